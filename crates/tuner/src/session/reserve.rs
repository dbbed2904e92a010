//! Reserves a part of the run's time for the finals.

use std::time::{Duration, Instant};

use super::{FINALISTS, Session};

/// Rounds that finals need for a decision: half of those they take when there is time.
const ROUNDS: f64 = 12.0;

/// The shortest sample of a round, in seconds.
const SAMPLE: f64 = 200e-6;

/// The largest reserve, as a divisor of the run's time.
const MOST: u32 = 2;

/// The time that finals may take after the run's time is over.
const LEAST: Duration = Duration::from_secs(1);

/// The mean seconds of each step of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TrialPace {
    build: f64,
    check: f64,
    time: f64,
}

impl TrialPace {
    /// The pace of `trials` trials, from the total time of each step.
    pub(super) fn of(spent: [Duration; 3], trials: u64) -> Self {
        let mean = |step: Duration| step.as_secs_f64() / trials.max(1) as f64;
        let [build, check, time] = spent.map(mean);
        Self { build, check, time }
    }

    /// The seconds of finals among schedules with these call times: each is built, checked before
    /// and after, and timed for `rounds` seconds in total or for as many rounds as a decision
    /// needs.
    fn finals(&self, calls: &[f64], rounds: f64) -> f64 {
        let each = self.build + 2.0 * self.check;
        let round: f64 = calls.iter().map(|call| call.max(SAMPLE)).sum();
        calls.len() as f64 * each + rounds.max(ROUNDS * round)
    }

    /// The seconds that a trial in flight takes.
    fn trial(&self) -> f64 {
        self.build + self.check + self.time
    }
}

/// How many candidates the finals can include within `seconds`.
///
/// The schedules in `musts` always take part; so does at least one candidate.
fn affordable(
    pace: TrialPace,
    musts: &[f64],
    candidates: &[f64],
    seconds: f64,
    rounds: f64,
) -> usize {
    let fits = |count: &usize| {
        let calls = [musts, &candidates[..*count]].concat();
        pace.finals(&calls, rounds.min(seconds / 2.0)) <= seconds
    };
    let most = candidates.len().min(FINALISTS);
    (1..=most).rev().find(fits).unwrap_or(1)
}

impl Session<'_> {
    /// The deadline of the run, if it has one.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.tuner.budget.time.map(|time| self.begun + time)
    }

    /// The deadline of the finals.
    pub(super) fn finals_deadline(&self) -> Option<Instant> {
        self.deadline().map(|until| until.max(Instant::now() + LEAST))
    }

    /// The time that the search leaves for trials in flight and for the finals.
    pub(super) fn reserve(&self) -> Duration {
        let Some(time) = self.tuner.budget.time else { return Duration::ZERO };
        let rounds = self.tuner.budget.for_finalists();
        let pace = self.pace();
        let mut calls = self.calls();
        calls.truncate(FINALISTS);
        calls.extend(self.progress.default_seconds);
        let seconds = pace.finals(&calls, rounds.as_secs_f64()) + pace.trial();
        let reserve = Duration::try_from_secs_f64(seconds).unwrap_or(time);
        reserve.max(rounds).min(time / MOST)
    }

    /// How many candidates fit into the finals beside `musts`.
    pub(super) fn finalists_in_time(&self, musts: &[f64]) -> usize {
        let Some(until) = self.finals_deadline() else { return FINALISTS };
        let seconds = until.saturating_duration_since(Instant::now()).as_secs_f64();
        let rounds = self.tuner.budget.for_finalists().as_secs_f64();
        affordable(self.pace(), musts, &self.calls(), seconds, rounds)
    }

    fn pace(&self) -> TrialPace {
        TrialPace::of(self.spent, self.tried)
    }

    /// The call times of the measured candidates, the fastest first.
    fn calls(&self) -> Vec<f64> {
        let mut calls: Vec<f64> = self.measured.iter().map(|(seconds, _, _)| *seconds).collect();
        calls.sort_by(f64::total_cmp);
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_take_part_where_there_is_less_time() {
        let pace = TrialPace { build: 0.5, check: 0.1, time: 0.1 };
        let count = |seconds| affordable(pace, &[1e-3, 1e-3], &[1e-3; 9], seconds, 3.0);
        assert_eq!([100.0, 7.5, 6.0, 4.0, 0.1].map(count), [FINALISTS, 4, 2, 1, 1]);
        // Long calls count in every round.
        let slow = affordable(pace, &[0.5, 0.5], &[0.5; 9], 30.0, 3.0);
        assert_eq!(slow, 2);
    }

    #[test]
    fn a_pace_is_a_mean() {
        let seconds = Duration::from_secs;
        let pace = TrialPace::of([seconds(8), seconds(4), seconds(2)], 4);
        assert_eq!(pace, TrialPace { build: 2.0, check: 1.0, time: 0.5 });
        assert!((pace.trial() - 3.5).abs() < 1e-9);
        // Two schedules are built, checked twice, and timed for a second.
        assert!((pace.finals(&[1e-3, 1e-3], 1.0) - 9.0).abs() < 1e-9);
        assert_eq!(TrialPace::of([Duration::ZERO; 3], 0), TrialPace::default());
    }
}
