//! Best-so-far curves and their medians.

use serde::Serialize;

use crate::downsample::downsample;

/// The best so far of a run: one entry per improvement, and one for its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Curve {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the trial.
    pub trials: Vec<u64>,
    /// The seconds since the run began.
    pub elapsed: Vec<f64>,
    /// The best so far: seconds of a call.
    pub seconds: Vec<f64>,
}

/// The median of several runs' curves, by trials and by time. A run that has ended counts with its
/// best; the curve ends when fewer than half of the runs continue.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Median {
    /// By the number of trials.
    pub by_trials: Vec<(f64, f64)>,
    /// By the seconds since the run began.
    pub by_elapsed: Vec<(f64, f64)>,
}

/// An improvement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    pub(crate) trial: u64,
    pub(crate) elapsed: f64,
    pub(crate) seconds: f64,
}

/// The history of a run's best.
#[derive(Debug, Clone, Default)]
pub(crate) struct BestSoFar {
    steps: Vec<Step>,
    trial: u64,
    elapsed: f64,
}

impl BestSoFar {
    /// Adds the next trial; `true` if it is the best so far.
    pub(crate) fn observe(&mut self, trial: u64, elapsed: f64, seconds: Option<f64>) -> bool {
        self.trial = trial;
        // Trials run concurrently and can finish out of order.
        if elapsed.is_finite() {
            self.elapsed = self.elapsed.max(elapsed);
        }
        let Some(seconds) = seconds else { return false };
        let improves = self.best().is_none_or(|best| seconds < best);
        if improves {
            self.steps.push(Step { trial, elapsed: self.elapsed, seconds });
        }
        improves
    }

    /// The best of the run.
    pub(crate) fn best(&self) -> Option<f64> {
        self.steps.last().map(|step| step.seconds)
    }

    /// The first step that takes at most `seconds`.
    pub(crate) fn reaches(&self, seconds: f64) -> Option<Step> {
        self.steps.iter().copied().find(|step| step.seconds <= seconds)
    }

    /// At most `at_most` steps, and the end of the run.
    fn shown(&self, at_most: usize) -> Vec<Step> {
        let mut steps = downsample(&self.steps, at_most);
        if let Some(last) = self.steps.last() {
            steps.push(Step { trial: self.trial, elapsed: self.elapsed, ..*last });
        }
        steps
    }
}

impl Curve {
    /// The curve of a run with at most `at_most` steps.
    pub(crate) fn of(history: &BestSoFar, seed: u64, at_most: usize) -> Self {
        let steps = history.shown(at_most);
        Self {
            seed,
            trials: steps.iter().map(|step| step.trial).collect(),
            elapsed: steps.iter().map(|step| rounded(step.elapsed)).collect(),
            seconds: steps.iter().map(|step| rounded(step.seconds)).collect(),
        }
    }
}

impl Median {
    /// More steps per run do not move the median visibly.
    const STEPS_OF_A_RUN: usize = 160;

    /// The median of several runs with at most `at_most` steps.
    pub(crate) fn of(histories: &[&BestSoFar], at_most: usize) -> Self {
        let by = |place: fn(&Step) -> f64| {
            let line = |history: &&BestSoFar| -> Vec<(f64, f64)> {
                history
                    .shown(Self::STEPS_OF_A_RUN)
                    .iter()
                    .map(|step| (place(step), step.seconds))
                    .collect()
            };
            median_line(&histories.iter().map(line).collect::<Vec<_>>(), at_most)
        };
        Self { by_trials: by(|step| step.trial as f64), by_elapsed: by(|step| step.elapsed) }
    }
}

/// The median of step functions. One without a value yet counts as infinitely slow.
fn median_line(lines: &[Vec<(f64, f64)>], at_most: usize) -> Vec<(f64, f64)> {
    let mut ends: Vec<f64> = lines.iter().filter_map(|line| Some(line.last()?.0)).collect();
    ends.sort_by(f64::total_cmp);
    let Some(&end) = ends.get(ends.len() / 2) else { return Vec::new() };
    let mut places: Vec<f64> = lines.iter().flatten().map(|(place, _)| *place).collect();
    places.retain(|place| *place <= end);
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut at = vec![0; lines.len()];
    let mut middle = Vec::new();
    for place in downsample(&places, at_most) {
        let mut values = Vec::with_capacity(lines.len());
        for (line, at) in lines.iter().zip(&mut at) {
            while line.get(*at).is_some_and(|(next, _)| *next <= place) {
                *at += 1;
            }
            values.push(if *at == 0 { f64::INFINITY } else { line[*at - 1].1 });
        }
        if let Some(value) = median(&mut values).filter(|value| value.is_finite()) {
            middle.push((rounded(place), rounded(value)));
        }
    }
    middle
}

/// The median of numbers.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) =
        (values.get(values.len().saturating_sub(1) / 2)?, values.get(values.len() / 2)?);
    Some(low + (high - low) / 2.0).filter(|middle| !middle.is_nan()).or(Some(*high))
}

/// Rounds to five digits: more than a plot shows, and short in a file.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(trials: &[(u64, f64)], end: u64) -> BestSoFar {
        let mut history = BestSoFar::default();
        for (trial, seconds) in trials {
            history.observe(*trial, *trial as f64 / 10.0, Some(*seconds));
        }
        history.observe(end, end as f64 / 10.0, None);
        history
    }

    #[test]
    fn a_curve_has_the_improvements_and_the_end() {
        let run = history(&[(0, 5.0), (1, 6.0), (2, 3.0), (3, 3.0)], 9);
        let curve = Curve::of(&run, 7, 10);
        assert_eq!(curve.trials, [0, 2, 9]);
        assert_eq!(curve.seconds, [5.0, 3.0, 3.0]);
        assert_eq!(curve.elapsed, [0.0, 0.2, 0.9]);
        assert_eq!(run.reaches(4.0).map(|step| step.trial), Some(2));
    }

    #[test]
    fn the_middle_waits_for_half_of_the_runs() {
        let runs =
            [history(&[(0, 8.0), (4, 2.0)], 9), history(&[(2, 6.0)], 9), history(&[(5, 4.0)], 6)];
        let median = Median::of(&runs.iter().collect::<Vec<_>>(), 10);
        let expected = [(2.0, 8.0), (4.0, 6.0), (5.0, 4.0), (6.0, 4.0), (9.0, 4.0)];
        assert_eq!(median.by_trials, expected);
    }

    #[test]
    fn the_middle_of_none_one_and_infinities() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0]), Some(3.0));
        assert_eq!(median(&mut [4.0, 2.0]), Some(3.0));
        assert_eq!(median(&mut [f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
    }
}
