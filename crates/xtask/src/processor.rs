//! Hang detection by CPU time.

use std::fs;
use std::path::Path;

use tensorwright_runtime::Activity;

/// A thread of this process whose CPU time other threads can read.
#[derive(Debug, Clone)]
pub(crate) struct Thread(String);

impl Thread {
    /// The current thread.
    pub(crate) fn current() -> Self {
        let link = fs::read_link("/proc/thread-self").unwrap_or_default();
        Self(format!("/proc/{}/stat", link.display()))
    }

    /// Its CPU seconds.
    pub(crate) fn seconds(&self) -> f64 {
        Activity::of_thread(Path::new(&self.0)).map_or(0.0, |activity| activity.seconds)
    }
}

/// The CPU seconds of the current thread, to the microsecond.
pub(crate) fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Distinguishes a hanging process from a busy or starved one.
pub(crate) struct Watchdog {
    limit: f64,
    most_idle: u32,
    last: Activity,
    /// The CPU time at the first check after the last output.
    since: Option<f64>,
    idle: u32,
}

impl Watchdog {
    /// A process hangs if it uses `limit` CPU seconds without output, or is idle for more than
    /// `most_idle` checks.
    pub(crate) fn new(limit: f64, most_idle: u32) -> Self {
        Self { limit, most_idle, last: Activity::default(), since: None, idle: 0 }
    }

    /// Reports output of the process.
    pub(crate) fn reset(&mut self) {
        self.since = None;
        self.idle = 0;
    }

    /// Checks the process; returns why it hangs, if it does.
    pub(crate) fn look(&mut self, now: Activity) -> Option<String> {
        let is_idle = !now.is_busy && now.seconds <= self.last.seconds;
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        self.last = now;
        if now.seconds - *self.since.get_or_insert(now.seconds) > self.limit {
            return Some(format!("no output for {:.0} s of CPU time", self.limit));
        }
        (self.idle > self.most_idle).then(|| "is idle".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_its_own_time() {
        let thread = Thread::current();
        let before = thread.seconds();
        while thread.seconds() < before + 0.05 {
            std::hint::black_box(before);
        }
    }

    #[test]
    fn only_time_that_was_used_or_wasted_counts() {
        let at = |seconds, is_busy| Activity { seconds, is_busy };
        let mut dog = Watchdog::new(10.0, 2);
        // On a fully loaded machine, checks pass without CPU time.
        assert!((0..100).all(|_| dog.look(at(0.0, true)).is_none()));
        assert_eq!(dog.look(at(9.0, true)), None);
        dog.reset();
        // CPU time before its last output does not count.
        assert_eq!(dog.look(at(50.0, true)), None);
        assert_eq!(dog.look(at(59.0, true)), None);
        let hangs = dog.look(at(61.0, true)).unwrap();
        assert_eq!(hangs, "no output for 10 s of CPU time");
        let mut dog = Watchdog::new(10.0, 2);
        assert_eq!((dog.look(at(0.0, false)), dog.look(at(0.0, false))), (None, None));
        assert_eq!(dog.look(at(0.0, false)).unwrap(), "is idle");
    }
}
