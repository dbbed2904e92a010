//! [`hold_forks`]: delays forks of the process in other threads.
//!
//! A forked child has the parent's memory but only one of its threads. A lock that another thread
//! held stays locked in the child forever, and its data may be inconsistent. Interpreters fork
//! (Python's `multiprocessing` does). So code that holds a lock for long, or calls a library that
//! holds its own, such as a compiler, delays forks until it is done.
#![allow(unsafe_code, reason = "asks the C library to tell of forks")]

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The number of threads that hold forks.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread is waiting to fork or forking: no new holds begin meanwhile.
static FORKING: AtomicBool = AtomicBool::new(false);

/// The polling interval: a child has no thread that could wake another.
const NAP: Duration = Duration::from_micros(50);

thread_local! {
    /// The number of holds of this thread.
    static MINE: Cell<usize> = const { Cell::new(0) };
}

/// Delays forks in other threads while it lives.
#[derive(Debug)]
#[must_use]
pub struct ForkHold {
    /// A hold belongs to its thread.
    _here: std::marker::PhantomData<*const ()>,
}

/// Prevents other threads from forking the process until the hold is dropped. Threads that fork
/// wait, so the holder must not wait for one of them. Holds may nest.
pub fn hold_forks() -> ForkHold {
    static TOLD: OnceLock<()> = OnceLock::new();
    TOLD.get_or_init(|| {
        // SAFETY: the handlers use atomic numbers and sleep, and unwind never. If they cannot be
        // registered, forks do not wait, as without them.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) };
    });
    let mine = MINE.get();
    if mine == 0 {
        enter();
    }
    MINE.set(mine + 1);
    ForkHold { _here: std::marker::PhantomData }
}

fn enter() {
    loop {
        HOLDERS.fetch_add(1, Ordering::SeqCst);
        if !FORKING.load(Ordering::SeqCst) {
            return;
        }
        HOLDERS.fetch_sub(1, Ordering::SeqCst);
        while FORKING.load(Ordering::SeqCst) {
            std::thread::sleep(NAP);
        }
    }
}

impl Drop for ForkHold {
    fn drop(&mut self) {
        let left = MINE.get().saturating_sub(1);
        MINE.set(left);
        if left == 0 {
            HOLDERS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The holds of this thread: it may fork itself, in a state that it knows.
fn own() -> usize {
    usize::from(MINE.get() > 0)
}

unsafe extern "C" fn before() {
    // Serializes forks.
    while FORKING.swap(true, Ordering::SeqCst) {
        std::thread::sleep(NAP);
    }
    while HOLDERS.load(Ordering::SeqCst) > own() {
        std::thread::sleep(NAP);
    }
}

unsafe extern "C" fn after() {
    FORKING.store(false, Ordering::SeqCst);
}

unsafe extern "C" fn after_in_child() {
    // Threads that waited for the fork do not exist in the child.
    HOLDERS.store(own(), Ordering::SeqCst);
    FORKING.store(false, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forks, and returns the result of `work` in the child, with a timeout.
    fn in_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child runs `work` and ends, without unwinding into the test harness.
        match unsafe { libc::fork() } {
            0 => {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                // SAFETY: ends the process at once.
                unsafe { libc::_exit(if matches!(done, Ok(true)) { 0 } else { 1 }) }
            }
            child => {
                for _ in 0..1000 {
                    let mut status = 0;
                    // SAFETY: the status is ours to be written.
                    if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
                        return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                // SAFETY: a child of ours that has not ended.
                unsafe { libc::kill(child, libc::SIGKILL) };
                false
            }
        }
    }

    #[test]
    fn locks_that_are_held_with_a_hold_are_free_in_children() {
        static LOCK: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _hold = hold_forks();
                        let _nested = hold_forks();
                        let mut number = LOCK.lock().unwrap();
                        *number += 1;
                        std::thread::sleep(Duration::from_micros(200));
                        *number += 1;
                    }
                });
            }
            let children = (0..50).filter(|_| {
                in_child(|| {
                    let _hold = hold_forks();
                    LOCK.lock().is_ok_and(|number| *number % 2 == 0)
                })
            });
            assert_eq!(children.count(), 50);
            // A thread's own hold does not prevent it from forking.
            let hold = hold_forks();
            assert!(in_child(|| HOLDERS.load(Ordering::SeqCst) == 1));
            drop(hold);
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(HOLDERS.load(Ordering::SeqCst), 0);
    }
}
