//! [`Allocation`]: a budget that many operators have in common.

/// Trials that every operator gets before the budget goes where it pays.
const FIRST_SLICE: u64 = 40;

/// Trials that are given at a time afterwards.
const SLICE: u64 = 32;

/// How much of an operator's last gain is expected of its next slice.
const DECAY: f64 = 0.5;

/// Who gets the next slice of a common budget.
///
/// Every operator gets a first slice. Then the next goes where it is expected to save most: the
/// operator's weight times the seconds that its last slice saved, decayed for every slice since that
/// saved nothing, as in Ansor's scheduler of tasks.
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
    /// An allocation to operators of these weights.
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

    /// The operator that goes next, and for how many trials; `None` if all are exhausted.
    #[must_use]
    pub fn next(&self) -> Option<(usize, u64)> {
        let open = self.states.iter().enumerate().filter(|(_, state)| !state.exhausted);
        let (place, state) = open.max_by(|(i, a), (j, b)| {
            // Of equal ones the one with fewer trials, then the first.
            a.expected.total_cmp(&b.expected).then(b.trials.cmp(&a.trials)).then(j.cmp(i))
        })?;
        Some((place, if state.seconds.is_none() { FIRST_SLICE } else { SLICE }))
    }

    /// Notes what a slice brought: the best seconds now, the trials, and whether there is nothing
    /// left to try.
    pub fn observe(&mut self, operator: usize, seconds: f64, trials: u64, exhausted: bool) {
        let Some(state) = self.states.get_mut(operator) else { return };
        let saved = match state.seconds {
            Some(before) => (before - seconds).max(0.0),
            // The first slice always saves much; a tenth of the time is a fair guess for the next.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_go_where_they_pay() {
        let mut allocation = Allocation::new(&[1.0, 1.0, 10.0]);
        for (operator, seconds) in [(0, 1.0), (1, 1.0), (2, 1.0)] {
            assert_eq!(allocation.next(), Some((operator, FIRST_SLICE)));
            allocation.observe(operator, seconds, 40, false);
        }
        // The one that is called ten times as often goes first ...
        assert_eq!(allocation.next(), Some((2, SLICE)));
        for _ in 0..5 {
            allocation.observe(2, 1.0, 32, false);
        }
        // ... until it gains nothing any more.
        assert_eq!(allocation.next(), Some((0, SLICE)));
        allocation.observe(0, 0.5, 32, false);
        assert_eq!(allocation.next(), Some((0, SLICE)));
        allocation.observe(0, 0.5, 32, true);
        assert_eq!(allocation.next(), Some((1, SLICE)));
    }
}
