//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lock protects here is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
