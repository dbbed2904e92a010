//! [`Activity`]: CPU time of a process tree.

use std::fs;
use std::path::Path;

/// The tick of Linux's process times: hundredths of a second, independent of the kernel's own
/// clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// The activity of a process and of all its descendants. Unlike wall time, it does not advance on a
/// busy or stopped machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Activity {
    /// The CPU time used so far.
    pub seconds: f64,
    /// Whether one of them is running, runnable, waiting for a disk or stopped: its lack of
    /// progress is not its own fault.
    pub is_busy: bool,
}

impl Activity {
    /// The activity of a child process; `None` once it has ended.
    #[must_use]
    pub fn of(process: u32) -> Option<Self> {
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

    /// The activity of a thread, given its `stat` file.
    #[must_use]
    pub fn of_thread(stat: &Path) -> Option<Self> {
        Self::of_stat(stat, false)
    }

    /// Reads a `stat` file, optionally with the time of children that have ended.
    fn of_stat(file: &Path, with_children: bool) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        // The program's name, in parentheses, may contain any character.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
        let own = ticks(11)? + ticks(12)?;
        let children = if with_children { ticks(13)? + ticks(14)? } else { 0.0 };
        let is_busy = !matches!(fields.first(), Some(&"S" | &"I" | &"Z" | &"X"));
        Some(Self { seconds: (own + children) / TICKS_PER_SECOND, is_busy })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// The activity of a shell and its children after a while.
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
}
