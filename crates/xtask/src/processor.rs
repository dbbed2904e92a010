//! Hangs, judged by processor time.

use std::fs;
use std::path::Path;

use tensorwright_runtime::Activity;

/// A thread of this process whose time any other thread may ask for.
#[derive(Debug, Clone)]
pub(crate) struct Thread(String);

impl Thread {
    /// The thread that calls.
    pub(crate) fn current() -> Self {
        let link = fs::read_link("/proc/thread-self").unwrap_or_default();
        Self(format!("/proc/{}/stat", link.display()))
    }

    /// The processor seconds that it has used.
    pub(crate) fn seconds(&self) -> f64 {
        Activity::of_thread(Path::new(&self.0)).map_or(0.0, |activity| activity.seconds)
    }
}

/// The processor seconds that the thread that calls has used, to the microsecond.
pub(crate) fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Tells a process that hangs from one that has much to do or is kept from it.
pub(crate) struct Watchdog {
    limit: f64,
    most_idle: u32,
    last: Activity,
    /// The processor time at the first look after the last sign of life.
    since: Option<f64>,
    idle: u32,
}

impl Watchdog {
    /// A process hangs that uses so many processor seconds without a sign of life, or that waits for
    /// nothing during so many looks at it.
    pub(crate) fn new(limit: f64, most_idle: u32) -> Self {
        Self { limit, most_idle, last: Activity::default(), since: None, idle: 0 }
    }

    /// There is a sign of life.
    pub(crate) fn reset(&mut self) {
        self.since = None;
        self.idle = 0;
    }

    /// Looks at the process: why it hangs, if it does.
    pub(crate) fn look(&mut self, now: Activity) -> Option<String> {
        let is_idle = !now.is_busy && now.seconds <= self.last.seconds;
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        self.last = now;
        if now.seconds - *self.since.get_or_insert(now.seconds) > self.limit {
            return Some(format!("no output for {:.0} s of CPU time", self.limit));
        }
        (self.idle > self.most_idle).then(|| "waits for something that does not come".to_owned())
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
        // A machine without a free processor: looks pass, time does not.
        assert!((0..100).all(|_| dog.look(at(0.0, true)).is_none()));
        assert_eq!(dog.look(at(9.0, true)), None);
        dog.reset();
        // What it used while it spoke does not count.
        assert_eq!(dog.look(at(50.0, true)), None);
        assert_eq!(dog.look(at(59.0, true)), None);
        let hangs = dog.look(at(61.0, true)).unwrap();
        assert_eq!(hangs, "no output for 10 s of CPU time");
        let mut dog = Watchdog::new(10.0, 2);
        assert_eq!((dog.look(at(0.0, false)), dog.look(at(0.0, false))), (None, None));
        assert_eq!(dog.look(at(0.0, false)).unwrap(), "waits for something that does not come");
    }
}
