//! [`Activity`]: processor time, which a busy or stopped machine does not add to.

use std::fs;
use std::path::Path;

/// Linux counts the time of processes in hundredths of a second, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// The activity of a process and of all processes that it has started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Activity {
    /// The processor time that they have used so far.
    pub seconds: f64,
    /// Whether one of them runs, wants to, waits for a disk or was stopped: it is not its own fault
    /// that it gets nowhere.
    pub is_busy: bool,
}

impl Activity {
    /// That of a process that this one has started; `None` once it has ended.
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

    /// That of a thread, by its `stat` file.
    #[must_use]
    pub fn of_thread(stat: &Path) -> Option<Self> {
        Self::of_stat(stat, false)
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
}
