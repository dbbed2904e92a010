//! Ctrl-C while a call waits for a device.
//!
//! Handlers of signals run with the interpreter, which the call has left. It asks for it again ten times a second, but
//! only while it holds no lock that somebody with the interpreter may wait for.

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;
use tensorwright::set_interrupt;

thread_local! {
    static MAY_ASK: Cell<bool> = const { Cell::new(false) };
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Lets waits for devices be interrupted.
pub(crate) fn listen() {
    set_interrupt(is_interrupted);
}

/// Makes a call during which a handler of a signal may raise an exception.
pub(crate) fn interruptible<T>(call: impl FnOnce() -> T) -> T {
    MAY_ASK.set(true);
    let result = call();
    MAY_ASK.set(false);
    result
}

/// What a handler raised during the last call of this thread.
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
