//! How far a run is, in one line.

use std::fmt;
use std::time::Duration;

use tensorwright_outcome::Seconds;

use crate::event::Progress;

/// The steps of a sparkline.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many of them.
const WIDTH: usize = 20;

/// One line: trials, the best, outcomes, time left, a curve.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&line(self))
    }
}

fn line(progress: &Progress) -> String {
    let mut parts = Vec::new();
    let of = progress.budget.map_or_else(String::new, |budget| format!("/{budget}"));
    parts.push(format!("{}{of} trials", progress.trials));
    if let Some(best) = progress.best_seconds {
        let mut text = format!("best {:.2}", Seconds(best));
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
    let by_trials = progress.budget.filter(|_| progress.trials > 0).map(|budget| {
        let rest = budget.saturating_sub(progress.trials) as f64;
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
