//! The part of a run's time that its search leaves to the finals.

use std::time::{Duration, Instant};

use super::{FINALISTS, Session};

/// Rounds that finals need to decide anything: half of those that they take where there is time.
const ROUNDS: f64 = 12.0;

/// How long a sample of a round takes at least, in seconds.
const SAMPLE: f64 = 200e-6;

/// The most of a time that a search leaves to the finals.
const MOST: u32 = 2;

/// How long finals may take although the time is over.
const LEAST: Duration = Duration::from_secs(1);

/// How long the steps of a trial take, in the mean, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TrialPace {
    build: f64,
    check: f64,
    time: f64,
}

impl TrialPace {
    /// The pace of so many trials, by what their steps took in all.
    pub(super) fn of(spent: [Duration; 3], trials: u64) -> Self {
        let mean = |step: Duration| step.as_secs_f64() / trials.max(1) as f64;
        let [build, check, time] = spent.map(mean);
        Self { build, check, time }
    }

    /// The seconds of finals between schedules whose calls take so long: each is built, checked before and after, and timed
    /// for `rounds` seconds with the others, or as many rounds as decide.
    fn finals(&self, calls: &[f64], rounds: f64) -> f64 {
        let each = self.build + 2.0 * self.check;
        let round: f64 = calls.iter().map(|call| call.max(SAMPLE)).sum();
        calls.len() as f64 * each + rounds.max(ROUNDS * round)
    }

    /// The seconds until a trial that is out is back.
    fn trial(&self) -> f64 {
        self.build + self.check + self.time
    }
}

/// How many candidates can take part in finals of so many seconds.
///
/// Those that have to take part do so beside them; one candidate always does.
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
    /// When the time of the run is over, if it has one.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.tuner.budget.time.map(|time| self.begun + time)
    }

    /// When finals have to be over.
    pub(super) fn finals_deadline(&self) -> Option<Instant> {
        self.deadline().map(|until| until.max(Instant::now() + LEAST))
    }

    /// What the search leaves of the time to the finals, and to what is out when it ends.
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

    /// How many candidates can be measured again beside others whose calls take so long.
    pub(super) fn finalists_in_time(&self, musts: &[f64]) -> usize {
        let Some(until) = self.finals_deadline() else { return FINALISTS };
        let seconds = until.saturating_duration_since(Instant::now()).as_secs_f64();
        let rounds = self.tuner.budget.for_finalists().as_secs_f64();
        affordable(self.pace(), musts, &self.calls(), seconds, rounds)
    }

    fn pace(&self) -> TrialPace {
        TrialPace::of(self.spent, self.tried)
    }

    /// The seconds of a call of the measured candidates, the fastest first.
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
        // Calls that take long count in every round.
        let slow = affordable(pace, &[0.5, 0.5], &[0.5; 9], 30.0, 3.0);
        assert_eq!(slow, 2);
    }

    #[test]
    fn a_pace_is_a_mean() {
        let seconds = Duration::from_secs;
        let pace = TrialPace::of([seconds(8), seconds(4), seconds(2)], 4);
        assert_eq!(pace, TrialPace { build: 2.0, check: 1.0, time: 0.5 });
        assert!((pace.trial() - 3.5).abs() < 1e-9);
        // Two are built, checked twice, and timed for a second.
        assert!((pace.finals(&[1e-3, 1e-3], 1.0) - 9.0).abs() < 1e-9);
        assert_eq!(TrialPace::of([Duration::ZERO; 3], 0), TrialPace::default());
    }
}
