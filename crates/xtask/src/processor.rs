//! Processor time, which a busy or stopped machine does not add to.

use std::fs;
use std::path::Path;

/// Linux counts the time of processes in hundredths of a second, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process and all that it has started do.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Activity {
    /// The processor time that they have used so far.
    pub(crate) seconds: f64,
    /// Whether one of them runs, wants to, waits for a disk or was stopped: it is not its own fault
    /// that it gets nowhere.
    pub(crate) is_busy: bool,
}

impl Activity {
    /// That of a process that this one has started; `None` once it has ended.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let folder = format!("/proc/{process}");
        let mut sum = Self::of_stat(Path::new(&folder).join("stat").as_path(), true)?;
        let tasks = fs::read_dir(format!("{folder}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let thread = Self::of_stat(&task.path().join("stat"), false);
            sum.is_busy |= thread.is_some_and(|thread| thread.is_busy);
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                let child = Self::of(child).unwrap_or_default();
                sum.seconds += child.seconds;
                sum.is_busy |= child.is_busy;
            }
        }
        Some(sum)
    }

    /// Reads a `stat` file; with the time of children that have ended, if wanted.
    fn of_stat(file: &Path, with_children: bool) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        // The name of the program, in parentheses, may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
        let own = ticks(11)? + ticks(12)?;
        let children = if with_children { ticks(13)? + ticks(14)? } else { 0.0 };
        let is_busy = !matches!(fields.first(), Some(&"S" | &"I" | &"Z" | &"X"));
        Some(Self { seconds: (own + children) / TICKS_PER_SECOND, is_busy })
    }
}

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
        Activity::of_stat(Path::new(&self.0), false).map_or(0.0, |activity| activity.seconds)
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
            return Some(format!("used {:.0} s of processor time without a word", self.limit));
        }
        (self.idle > self.most_idle).then(|| "waits for something that does not come".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// What a shell and its children have used after a while.
    fn watch(script: &str, during: Duration) -> Activity {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let started = Instant::now();
        let mut activity = Activity::default();
        while started.elapsed() < during && activity.seconds < 0.2 {
            std::thread::sleep(Duration::from_millis(50));
            activity = Activity::of(child.id()).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        activity
    }

    #[test]
    fn time_counts_for_children_and_sleep_does_not() {
        let busy = watch(
            "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); read x",
            Duration::from_secs(60),
        );
        assert!(busy.seconds >= 0.2, "{busy:?}");
        let idle = watch("read x", Duration::from_millis(300));
        assert!(idle.seconds < 0.2 && !idle.is_busy, "{idle:?}");
    }

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
        assert_eq!(hangs, "used 10 s of processor time without a word");
        let mut dog = Watchdog::new(10.0, 2);
        assert_eq!((dog.look(at(0.0, false)), dog.look(at(0.0, false))), (None, None));
        assert_eq!(dog.look(at(0.0, false)).unwrap(), "waits for something that does not come");
    }
}
