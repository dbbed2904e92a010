//! Whether a process still has the threads that it had when a pool was made.
//!
//! A forked child has a copy of the pool but none of its helpers: waiting for them would take forever.
//! Interpreters fork (Python's `multiprocessing` does), so children must notice.
#![allow(unsafe_code, reason = "asks the C library to tell of forks")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many forks lie between the first process and this one.
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// The process in which this was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    generation: usize,
}

impl Family {
    /// This process.
    pub(super) fn here() -> Self {
        static TOLD: OnceLock<()> = OnceLock::new();
        TOLD.get_or_init(|| {
            // SAFETY: the handler only counts, which is allowed in a child that was forked from any
            // state. If it cannot be registered, forks are not noticed, as without it.
            unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Self { generation: GENERATION.load(Ordering::Relaxed) }
    }

    /// Whether this process is that one.
    pub(super) fn is_here(self) -> bool {
        self.generation == GENERATION.load(Ordering::Relaxed)
    }
}

unsafe extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
