//! The progress of a run in one terminal line.

use std::fmt;
use std::time::Duration;

use tensorwright_outcome::Seconds;

use crate::event::Progress;

/// The steps of a sparkline.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The length of a sparkline.
const WIDTH: usize = 20;

/// A part of the line.
struct Part {
    text: String,
    /// The separator before it.
    joint: &'static str,
    /// The part with the highest rank is dropped first; rank 0 stays.
    rank: u8,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(usize::MAX))
    }
}

impl Progress {
    /// One line of at most `columns` columns: trials, the best, outcomes, time left, a curve. The
    /// least important parts are dropped if the line is too long.
    #[must_use]
    pub fn line(&self, columns: usize) -> String {
        fitted(parts(self), columns)
    }
}

fn parts(progress: &Progress) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |joint, rank, text: String| {
        if !text.is_empty() {
            parts.push(Part { text, joint, rank });
        }
    };
    let of = progress.budget.map_or_else(String::new, |budget| format!("/{budget}"));
    add(" | ", 0, format!("{}{of} trials", progress.trials));
    if let Some(best) = progress.best_seconds {
        add(" | ", 0, format!("best {:.2}", Seconds(best)));
        if progress.flops > 0.0 {
            add(", ", 5, format!("{:.1} GFLOP/s", progress.flops / best / 1e9));
        }
        let roof = 100.0 * progress.roof_seconds / best;
        add(", ", 3, format!("{roof:.0} % of the roof"));
        if let Some(default) = progress.default_seconds {
            add(", ", 1, format!("{:.2}x the default", default / best));
        }
    }
    add(" | ", 4, progress.tally.to_string());
    if let Some(left) = left(progress) {
        add(" | ", 2, format!("{} s left", left.as_secs()));
    }
    add(" | ", 6, sparkline(&progress.curve));
    parts
}

/// Drops parts until the line fits.
fn fitted(mut parts: Vec<Part>, columns: usize) -> String {
    loop {
        let line = joined(&parts);
        if line.chars().count() <= columns {
            return line;
        }
        let least = (0..parts.len()).max_by_key(|place| parts[*place].rank);
        match least.filter(|place| parts[*place].rank > 0) {
            Some(place) => drop(parts.remove(place)),
            None => return line.chars().take(columns).collect(),
        }
    }
}

fn joined(parts: &[Part]) -> String {
    let mut line = String::new();
    for part in parts {
        if !line.is_empty() {
            line.push_str(part.joint);
        }
        line.push_str(&part.text);
    }
    line
}

/// The estimated time left: what the time limit allows, or the mean time per trial so far.
fn left(progress: &Progress) -> Option<Duration> {
    let by_time = progress.time.map(|time| time.saturating_sub(progress.elapsed));
    let by_trials = progress.budget.filter(|_| progress.trials > 0).map(|budget| {
        let rest = budget.saturating_sub(progress.trials) as f64;
        progress.elapsed.mul_f64((rest / progress.trials as f64).min(1e6))
    });
    match (by_time, by_trials) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The best speed after every trial, as a sparkline.
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
    use tensorwright_outcome::{Outcome, Tally, Timing};

    #[test]
    fn a_curve_climbs() {
        let curve = sparkline(&[4.0, 2.0, 2.0, 1.0]);
        assert_eq!(curve.chars().count(), WIDTH);
        assert!(curve.starts_with('▁') && curve.ends_with('█'), "{curve}");
        assert_eq!(sparkline(&[1.0]), "");
    }

    fn progress() -> Progress {
        let mut tally = Tally::default();
        (0..95).for_each(|_| tally.add(&Outcome::Measured(Timing::default())));
        (0..10).for_each(|_| {
            tally.add(&Outcome::Illegal { rule: "registers".into(), reason: "needs 40".into() });
        });
        Progress {
            trials: 95,
            budget: Some(200),
            elapsed: Duration::from_secs(37),
            time: Some(Duration::from_secs(60)),
            default_seconds: Some(348.81e-6),
            best_seconds: Some(249.15e-6),
            flops: 33.5e6,
            roof_seconds: 219.25e-6,
            tally,
            curve: vec![4.0, 2.0, 1.0],
            ..Progress::default()
        }
    }

    #[test]
    fn the_line_fits_the_terminal() {
        let full = "95/200 trials | best 249.15 us, 134.5 GFLOP/s, 88 % of the roof, 1.40x the default | \
                    95 measured, 10 illegal | 23 s left | ▁▁▁▁▁▁▁▁▁▁▃▃▃▃▃▃▃▃▃█";
        assert_eq!(progress().to_string(), full);
        let line = |columns: usize| progress().line(columns - 1);
        assert_eq!(
            line(140),
            "95/200 trials | best 249.15 us, 134.5 GFLOP/s, 88 % of the roof, 1.40x the default | \
             95 measured, 10 illegal | 23 s left"
        );
        assert_eq!(
            line(80),
            "95/200 trials | best 249.15 us, 88 % of the roof, 1.40x the default | 23 s left"
        );
        assert_eq!(line(40), "95/200 trials | best 249.15 us");
        assert_eq!(line(11), "95/200 tri");
        for columns in 0..200 {
            assert!(progress().line(columns).chars().count() <= columns);
        }
    }
}
