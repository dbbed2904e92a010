//! Ctrl-C while a call waits for a device.
//!
//! Signal handlers run with the interpreter lock, which the call has released. It reacquires the
//! lock ten times a second, but only while it holds no other lock that a thread with the
//! interpreter may wait for.

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;
use tensorwright::set_interrupt;

thread_local! {
    static MAY_ASK: Cell<bool> = const { Cell::new(false) };
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Makes waits for devices interruptible.
pub(crate) fn listen() {
    set_interrupt(is_interrupted);
}

/// Runs a call in which a signal handler may raise an exception.
pub(crate) fn interruptible<T>(call: impl FnOnce() -> T) -> T {
    MAY_ASK.set(true);
    let result = call();
    MAY_ASK.set(false);
    result
}

/// The exception that a handler raised during this thread's last call.
pub(crate) fn raised() -> Option<PyErr> {
    RAISED.take()
}

fn is_interrupted() -> bool {
    MAY_ASK.get()
        && Python::attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(error) => {
                RAISED.set(Some(error));
                true
            }
        })
}
