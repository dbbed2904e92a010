//! [`Slot`]: synchronizes the caller and one helper with one atomic word.
//!
//! ```text
//!            offer                 accept                  finish
//!   IDLE  ---------->  OFFERED  ---------->  RUNNING  ---------------->  IDLE
//!    | ^                ^   |                   |                         ^
//!    | '-- withdraw ----|---'                   '-- await --> AWAITED ----'
//!    '---- sleep ----> PARKED                                     finish
//! ```
//!
//! The helper performs accept, finish and sleep; the caller performs offer, withdraw and await.
//! Every transition is one atomic read-modify-write of the same word, so no wake-up is lost: each
//! side learns from the former state whether the other one sleeps, and then wakes it.
//!
//! Memory ordering. All writes of the caller before `offer` (the job, the reset cursors, the data
//! that the body reads) are visible to the helper after `accept`: release and acquire on the state.
//! The helper's writes are visible to the caller after `join`: release in `finish`, acquire in
//! `join`. A helper accesses a job only between accept and finish, and the caller returns only when
//! the state is neither OFFERED nor RUNNING nor AWAITED, so the job outlives its use. Cursors are
//! relaxed: read-modify-writes of one word are totally ordered, which is all that claiming needs.
#![allow(unsafe_code, reason = "follows a pointer to the caller's stack while the caller waits")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};

use super::job::Job;
use super::spin_policy::SpinPolicy;

const IDLE: u32 = 0;
const PARKED: u32 = 1;
const OFFERED: u32 = 2;
const RUNNING: u32 = 3;
const AWAITED: u32 = 4;
const QUIT: u32 = 5;

/// The shared state of the caller and one helper, and the claimed part of the helper's share.
///
/// All data of an offer are in one cache line, which travels once to the helper. A slot has two
/// lines, because some CPUs fetch them in pairs.
#[repr(align(128))]
pub(super) struct Slot {
    state: AtomicU32,
    cursor: AtomicU32,
    job: AtomicPtr<Job<'static>>,
    /// The waiting thread, if the state is AWAITED.
    waiter: Mutex<Option<Thread>>,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(IDLE),
            cursor: AtomicU32::new(0),
            job: AtomicPtr::new(ptr::null_mut()),
            waiter: Mutex::new(None),
        }
    }

    /// Makes the whole share of this slot's worker available. Only between runs.
    pub(super) fn reset(&self) {
        self.cursor.store(0, Ordering::Relaxed);
    }

    /// Claims the next chunk of the share; numbers past the last chunk mean the end.
    pub(super) fn claim(&self) -> u32 {
        self.cursor.fetch_add(1, Ordering::Relaxed)
    }

    /// Offers a job to the helper and wakes it if it sleeps. The caller must `join` before the
    /// job's lifetime ends.
    pub(super) fn offer(&self, job: &Job<'_>, helper: &Thread) {
        self.job.store(ptr::from_ref(job).cast_mut().cast(), Ordering::Relaxed);
        if self.state.swap(OFFERED, Ordering::AcqRel) == PARKED {
            helper.unpark();
        }
    }

    /// Waits until the helper is done with the job. An unaccepted offer is withdrawn.
    pub(super) fn join(&self, spin_policy: &SpinPolicy) {
        if self.exchange(OFFERED, IDLE) {
            return;
        }
        let done = || !matches!(self.state.load(Ordering::Acquire), RUNNING | AWAITED);
        if spin_policy.spin(done) {
            return;
        }
        *self.waiter.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        self.exchange(RUNNING, AWAITED);
        while !done() {
            thread::park();
        }
    }

    /// Waits for an offer and runs `work` on it; `false` if the pool is being dropped.
    pub(super) fn serve(&self, spin_policy: &SpinPolicy, work: impl FnOnce(&Job<'_>)) -> bool {
        loop {
            spin_policy.spin(|| self.state.load(Ordering::Relaxed) != IDLE);
            if self.exchange(OFFERED, RUNNING) {
                break;
            }
            if self.exchange(IDLE, PARKED) {
                while self.state.load(Ordering::Relaxed) == PARKED {
                    thread::park();
                }
            } else if self.state.load(Ordering::Relaxed) == QUIT {
                return false;
            }
        }
        // SAFETY: the state is RUNNING, so a caller is between `offer` and the end of `join`, for
        // which it lends the job. The acquiring exchange above makes the job visible.
        work(unsafe { &*self.job.load(Ordering::Relaxed) });
        self.finish();
        true
    }

    /// Tells the helper to exit.
    pub(super) fn quit(&self, helper: &Thread) {
        self.state.store(QUIT, Ordering::Release);
        helper.unpark();
    }

    fn finish(&self) {
        if self.state.swap(IDLE, Ordering::AcqRel) == AWAITED {
            let waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waiter) = waiter {
                waiter.unpark();
            }
        }
    }

    fn exchange(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
