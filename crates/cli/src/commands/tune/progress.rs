//! How far a run is, on standard error: one line that changes where a person looks at a terminal, a
//! line now and then otherwise.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use tensorwright_tuner::{Event, Progress};

use crate::tuned::time;

/// How often a line is printed where nobody looks at a terminal.
const SELDOM: Duration = Duration::from_secs(10);

/// How often the line changes.
const OFTEN: Duration = Duration::from_millis(100);

/// The steps of a sparkline.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many of them.
const WIDTH: usize = 20;

/// Shows events.
pub(super) struct Display {
    shows: bool,
    is_terminal: bool,
    last: Option<Instant>,
}

impl Display {
    pub(super) fn new(shows: bool) -> Self {
        Self { shows, is_terminal: std::io::stderr().is_terminal(), last: None }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        if !self.shows {
            return;
        }
        match event {
            Event::Started { space, resumed, warm, progress } => {
                let mut line = format!("{space} points");
                if *resumed > 0 {
                    line.push_str(&format!(", going on after {resumed} trials"));
                }
                if *warm > 0 {
                    line.push_str(&format!(", {warm} schedules from the records first"));
                }
                let roof = time(progress.roof_seconds);
                self.line(&format!("{line}; no schedule can be faster than about {roof} here"));
            }
            Event::Trial { progress, is_best, .. } => {
                let due = if self.is_terminal { OFTEN } else { SELDOM };
                self.update(progress, *is_best && self.is_terminal, due);
            }
            Event::Waiting(progress) => self.update(progress, false, SELDOM.min(OFTEN * 10)),
            Event::Finalists { count, progress } => {
                self.update(progress, true, OFTEN);
                self.line(&format!("measuring {count} finalists again, in turns"));
            }
            Event::RecordsWait(why) => {
                self.line(&format!("records wait and will be written later: {why}"));
            }
            _ => {}
        }
    }

    /// Ends the line that changes.
    pub(super) fn finish(&mut self) {
        if self.shows && self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }

    fn line(&mut self, text: &str) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
        eprintln!("{text}");
    }

    fn update(&mut self, progress: &Progress, at_once: bool, due: Duration) {
        let due = if self.is_terminal { due } else { SELDOM };
        if !at_once && self.last.is_some_and(|last| last.elapsed() < due) {
            return;
        }
        self.last = Some(Instant::now());
        let text = text(progress);
        if self.is_terminal {
            eprint!("\r\x1b[K{text}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }
}

/// One line: trials, the best, outcomes, time left, a curve.
fn text(progress: &Progress) -> String {
    let mut parts = Vec::new();
    let of =
        if progress.budget < u64::MAX { format!("/{}", progress.budget) } else { String::new() };
    parts.push(format!("{}{of} trials", progress.trials));
    if let Some(best) = progress.best_seconds {
        let mut text = format!("best {}", time(best));
        if progress.flops > 0.0 {
            text.push_str(&format!(", {:.1} GFLOP/s", progress.flops / best / 1e9));
        }
        let roof = 100.0 * progress.roof_seconds / best;
        text.push_str(&format!(", {roof:.0} % of the roof"));
        if let Some(default) = progress.default_seconds {
            text.push_str(&format!(", {:.2}x the default", default / best));
        }
        parts.push(text);
    }
    parts.push(progress.tally.to_string());
    if let Some(left) = left(progress) {
        parts.push(format!("{} s left", left.as_secs()));
    }
    parts.push(sparkline(&progress.curve));
    parts.retain(|part| !part.is_empty());
    parts.join(" | ")
}

/// How long it will take: what the time allows, or as long per trial as so far.
fn left(progress: &Progress) -> Option<Duration> {
    let by_time = progress.time.map(|time| time.saturating_sub(progress.elapsed));
    let by_trials = (progress.trials > 0 && progress.budget < u64::MAX).then(|| {
        let rest = progress.budget.saturating_sub(progress.trials) as f64;
        progress.elapsed.mul_f64((rest / progress.trials as f64).min(1e6))
    });
    match (by_time, by_trials) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The best speed after every trial, as a curve.
fn sparkline(seconds: &[f64]) -> String {
    if seconds.len() < 2 {
        return String::new();
    }
    let speed = |place: usize| 1.0 / seconds[place].max(f64::MIN_POSITIVE);
    let (first, last) = (speed(0), speed(seconds.len() - 1));
    let bar = |step: usize| {
        let place = (seconds.len() - 1) * step / (WIDTH - 1);
        let share = if last > first { (speed(place) - first) / (last - first) } else { 1.0 };
        BARS[((share * 7.0).round() as usize).min(7)]
    };
    (0..WIDTH).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_climbs() {
        let curve = sparkline(&[4.0, 2.0, 2.0, 1.0]);
        assert_eq!(curve.chars().count(), WIDTH);
        assert!(curve.starts_with('▁') && curve.ends_with('█'), "{curve}");
        assert_eq!(sparkline(&[1.0]), "");
    }
}
