//! Spin-wait policy: how long to spin, and when to park at once.
//!
//! A spinning thread responds within a tenth of a microsecond, a parked one within five to fifty.
//! But spinning is only worthwhile if no other thread needs the CPU: on an oversubscribed machine,
//! a spinner is descheduled for milliseconds just when it is needed, and before that it delays the
//! threads it is waiting for.
//!
//! Oversubscription is detected without a system call: a spinner reads the clock about every
//! microsecond, and if a reading is [`GAP`] later than the previous one, it was descheduled. From
//! then on, all threads park at once for a while. This period doubles, up to [`LONGEST`], as long
//! as spinning keeps failing, and is reset after some time without failures.
//!
//! A second sign: the scheduler has put the unpinned caller on the CPU of a helper. Then the
//! helper's spinning delays the caller itself, and neither would see a gap.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Nanoseconds since the pool was created.
type Nanoseconds = u64;

/// The spin time before parking: longer than the serial code between two parallel loops of one
/// kernel, but negligible when a program continues with other work.
const SPIN: Nanoseconds = 100_000;

/// A clock reading this much later than the previous one means that the thread was descheduled.
/// Interrupts take less, time slices more.
const GAP: Nanoseconds = 200_000;

/// The time of parking at once after the first gap.
const SHORTEST: Nanoseconds = 4_000_000;

/// The maximum time of parking at once before spinning is tried again.
const LONGEST: Nanoseconds = 256_000_000;

/// The polls between two clock readings: about a microsecond if a pause takes 140 cycles.
const POLLS: u32 = 16;

/// The waiting policy that the threads of a pool share.
///
/// All accesses are relaxed: these are hints about time, no data depends on them, and a lost update
/// costs one more attempt to spin.
pub(super) struct SpinPolicy {
    enough_processors: bool,
    origin: Instant,
    park_until: AtomicU64,
    penalty: AtomicU64,
}

impl SpinPolicy {
    /// Without a CPU for each thread, no thread ever spins.
    pub(super) fn new(enough_processors: bool) -> Self {
        Self {
            enough_processors,
            origin: Instant::now(),
            park_until: AtomicU64::new(0),
            penalty: AtomicU64::new(SHORTEST),
        }
    }

    /// Spins until `done`, or until parking is better; returns whether `done`.
    pub(super) fn spin(&self, done: impl Fn() -> bool) -> bool {
        if done() {
            return true;
        }
        let start = self.now();
        if !self.may_spin(start) {
            return false;
        }
        let mut last = start;
        loop {
            let finished = (0..POLLS).any(|_| {
                spin_loop();
                done()
            });
            let now = self.now();
            let gap = now.saturating_sub(last) > GAP;
            if gap {
                self.report_gap(now);
            }
            if finished || gap || now - start > SPIN || !self.may_spin(now) {
                return finished;
            }
            last = now;
        }
    }

    /// Two threads of the pool are on one CPU: no thread spins for a short while.
    pub(super) fn report_collision(&self) {
        self.park_until.fetch_max(self.now() + SHORTEST, Relaxed);
    }

    /// Whether threads currently park at once.
    pub(super) fn is_crowded(&self) -> bool {
        !self.may_spin(self.now())
    }

    fn may_spin(&self, now: Nanoseconds) -> bool {
        self.enough_processors && now >= self.park_until.load(Relaxed)
    }

    /// A spinner was descheduled: no thread spins for a while.
    fn report_gap(&self, now: Nanoseconds) {
        let (until, penalty) = (self.park_until.load(Relaxed), self.penalty.load(Relaxed));
        if now < until {
            return; // Another thread has reported the same squeeze.
        }
        let relapse = until > 0 && now - until < 8 * penalty;
        let penalty = if relapse { (2 * penalty).min(LONGEST) } else { SHORTEST };
        self.penalty.store(penalty, Relaxed);
        self.park_until.store(now + penalty, Relaxed);
    }

    fn now(&self) -> Nanoseconds {
        self.origin.elapsed().as_nanos() as Nanoseconds
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Relaxed, SHORTEST, SpinPolicy};

    #[test]
    fn what_is_done_is_not_waited_for() {
        assert!(SpinPolicy::new(true).spin(|| true));
        assert!(SpinPolicy::new(false).spin(|| true));
    }

    #[test]
    fn spinning_ends() {
        assert!(!SpinPolicy::new(true).spin(|| false));
    }

    #[test]
    fn without_enough_processors_nobody_spins() {
        let polls = std::cell::Cell::new(0);
        SpinPolicy::new(false).spin(|| polls.replace(polls.get() + 1) > 100);
        assert_eq!(polls.get(), 1);
        assert!(SpinPolicy::new(false).is_crowded());
    }

    #[test]
    fn a_gap_stops_spinning_for_a_while() {
        let spin_policy = SpinPolicy::new(true);
        spin_policy.report_gap(1_000);
        assert!(!spin_policy.may_spin(1_000 + SHORTEST - 1));
        assert!(spin_policy.may_spin(1_000 + SHORTEST));
        spin_policy.report_gap(2_000);
        assert!(spin_policy.may_spin(1_000 + SHORTEST), "the same squeeze counts once");
    }

    #[test]
    fn a_collision_stops_spinning_for_a_short_while() {
        let spin_policy = SpinPolicy::new(true);
        spin_policy.report_collision();
        let until = spin_policy.park_until.load(Relaxed);
        assert!(!spin_policy.may_spin(until - 1) && spin_policy.may_spin(until));
        assert_eq!(spin_policy.penalty.load(Relaxed), SHORTEST);
    }

    #[test]
    fn relapses_double_the_while_and_calm_resets_it() {
        let spin_policy = SpinPolicy::new(true);
        let mut now = 1;
        for doublings in 0..10 {
            spin_policy.report_gap(now);
            now = spin_policy.park_until.load(Relaxed);
            assert_eq!(spin_policy.penalty.load(Relaxed), (SHORTEST << doublings).min(LONGEST));
        }
        spin_policy.report_gap(now + 8 * LONGEST);
        assert_eq!(spin_policy.penalty.load(Relaxed), SHORTEST);
    }

    #[test]
    fn a_descheduled_spinner_reports_it() {
        let spin_policy = SpinPolicy::new(true);
        let sleep = || std::thread::sleep(std::time::Duration::from_millis(2));
        let done = std::cell::Cell::new(0);
        spin_policy.spin(|| {
            if done.replace(done.get() + 1) == 3 {
                sleep();
            }
            false
        });
        assert!(spin_policy.park_until.load(Relaxed) > 0);
    }
}
