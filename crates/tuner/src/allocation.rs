//! [`Allocation`]: divides a common budget among operators.

use std::time::Duration;

use crate::budget::Budget;

/// Trials of an operator's first slice.
const FIRST_SLICE: u64 = 40;

/// Trials of each later slice.
const SLICE: u64 = 32;

/// The shortest first slice: a shorter one would be used up by starting.
const LEAST_TURN: Duration = Duration::from_secs(2);

/// With less time than this left, no operator gets another slice.
const LEAST_TIME: Duration = Duration::from_millis(500);

/// The expected gain of the next slice, as a share of the last gain.
const DECAY: f64 = 0.5;

/// Chooses the operator that gets the next slice of a common budget.
///
/// Every operator gets a first slice, at most its equal share of the remaining budget. Each later
/// slice goes to the operator with the largest expected saving: its weight times the seconds that
/// its last slice saved, decayed for every slice since then that saved nothing, as in Ansor's task
/// scheduler.
#[derive(Debug, Clone)]
pub struct Allocation {
    states: Vec<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    weight: f64,
    seconds: Option<f64>,
    expected: f64,
    trials: u64,
    exhausted: bool,
}

impl Allocation {
    /// An allocation to operators with these weights.
    #[must_use]
    pub fn new(weights: &[f64]) -> Self {
        let state = |weight: &f64| State {
            weight: *weight,
            seconds: None,
            expected: f64::INFINITY,
            trials: 0,
            exhausted: false,
        };
        Self { states: weights.iter().map(state).collect() }
    }

    /// The next operator and its part of the remaining budget; `None` if all are exhausted or
    /// nothing is left.
    #[must_use]
    pub fn next(&self, left: Budget) -> Option<(usize, Budget)> {
        if left.trials == Some(0) || left.time.is_some_and(|time| time < LEAST_TIME) {
            return None;
        }
        let open = || self.states.iter().enumerate().filter(|(_, state)| !state.exhausted);
        let (place, state) = open().max_by(|(i, a), (j, b)| {
            // Ties go to the operator with fewer trials, then to the first.
            a.expected.total_cmp(&b.expected).then(b.trials.cmp(&a.trials)).then(j.cmp(i))
        })?;
        if state.seconds.is_some() {
            return Some((place, Budget { trials: Some(limited(SLICE, left.trials)), ..left }));
        }
        // All operators without a first slice have equal shares.
        let waiting = open().filter(|(_, state)| state.seconds.is_none()).count();
        let share = left.trials.map(|trials| trials.div_ceil(waiting as u64));
        let turn = |time: Duration| (time / waiting as u32).max(LEAST_TURN).min(time);
        let trials = Some(limited(FIRST_SLICE, share));
        Some((place, Budget { trials, time: left.time.map(turn) }))
    }

    /// The time in which every operator gets a first slice of length `turn`.
    #[must_use]
    pub fn time_for_all(&self, turn: Duration) -> Duration {
        turn.max(LEAST_TURN).saturating_mul(u32::try_from(self.states.len()).unwrap_or(u32::MAX))
    }

    /// Records the result of a slice: the best time now, the trials, and whether the operator is
    /// exhausted.
    pub fn observe(&mut self, operator: usize, seconds: f64, trials: u64, exhausted: bool) {
        let Some(state) = self.states.get_mut(operator) else { return };
        let saved = match state.seconds {
            Some(before) => (before - seconds).max(0.0),
            // The first slice always saves much; assume that the next saves a tenth of the time.
            None => seconds * 0.1,
        };
        let last = if state.expected.is_finite() { state.expected } else { 0.0 };
        state.expected = (state.weight * saved).max(last * DECAY);
        let best = state.seconds.map_or(seconds, |before| before.min(seconds));
        state.seconds = Some(best);
        state.trials += trials;
        state.exhausted |= exhausted || trials == 0;
    }
}

fn limited(slice: u64, left: Option<u64>) -> u64 {
    left.map_or(slice, |left| slice.min(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_a_turn() {
        let mut allocation = Allocation::new(&[1.0; 3]);
        let seconds = |seconds| Budget::time(Duration::from_secs(seconds));
        let turn = |place, trials, time| {
            let time = Some(Duration::from_secs(time));
            Some((place, Budget { trials: Some(trials), time }))
        };
        assert_eq!(allocation.next(seconds(12)), turn(0, FIRST_SLICE, 4));
        allocation.observe(0, 1.0, 7, false);
        assert_eq!(allocation.next(seconds(8)), turn(1, FIRST_SLICE, 4));
        allocation.observe(1, 1.0, 7, false);
        assert_eq!(allocation.next(seconds(3)), turn(2, FIRST_SLICE, 3));
        allocation.observe(2, 9.0, 7, false);
        assert_eq!(allocation.next(seconds(30)), turn(2, SLICE, 30));
        assert_eq!(allocation.next(Budget::time(Duration::from_millis(400))), None);

        let trials = |trials| Allocation::new(&[1.0; 3]).next(Budget::trials(trials));
        assert_eq!(trials(10), Some((0, Budget::trials(4))));
        assert_eq!(trials(2), Some((0, Budget::trials(1))));
        assert_eq!(trials(0), None);
        // If the shares would be too small, some operators get nothing.
        assert_eq!(Allocation::new(&[1.0; 3]).next(seconds(3)), turn(0, FIRST_SLICE, 2));
        let all = |turn| allocation.time_for_all(Duration::from_secs(turn)).as_secs();
        assert_eq!([1, 5].map(all), [6, 15]);
    }

    #[test]
    fn trials_go_where_they_pay() {
        let mut allocation = Allocation::new(&[1.0, 1.0, 10.0]);
        let next = |allocation: &Allocation| {
            let (place, slice) = allocation.next(Budget::trials(1000)).unwrap();
            Some((place, slice.trials.unwrap()))
        };
        for (operator, seconds) in [(0, 1.0), (1, 1.0), (2, 1.0)] {
            assert_eq!(next(&allocation), Some((operator, FIRST_SLICE)));
            allocation.observe(operator, seconds, 40, false);
        }
        // The operator that is called ten times as often goes first ...
        assert_eq!(next(&allocation), Some((2, SLICE)));
        for _ in 0..5 {
            allocation.observe(2, 1.0, 32, false);
        }
        // ... until it gains nothing any more.
        assert_eq!(next(&allocation), Some((0, SLICE)));
        allocation.observe(0, 0.5, 32, false);
        assert_eq!(next(&allocation), Some((0, SLICE)));
        allocation.observe(0, 0.5, 32, true);
        assert_eq!(next(&allocation), Some((1, SLICE)));
    }
}
