//! [`Budget`]: the limits of a run.

use std::time::Duration;

/// The limits of a run: it ends at the first one it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The number of trials, that is of candidates that were built. Candidates refused by rules do
    /// not count.
    pub trials: Option<u64>,
    /// The time of the whole run, including its start and the finals, which take at least a second.
    pub time: Option<Duration>,
}

impl Budget {
    /// A budget of this many trials.
    #[must_use]
    pub fn trials(trials: u64) -> Self {
        Self { trials: Some(trials), time: None }
    }

    /// A budget of time alone.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self { trials: None, time: Some(time) }
    }

    /// The given limits, or `otherwise` trials if none is given.
    #[must_use]
    pub fn asked(trials: Option<u64>, time: Option<Duration>, otherwise: u64) -> Self {
        let trials = trials.or_else(|| time.is_none().then_some(otherwise));
        Self { trials, time }
    }

    /// How long to time finalists, unless their calls are long.
    #[must_use]
    pub(crate) fn for_finalists(&self) -> Duration {
        let most = Duration::from_secs(3);
        self.time.map_or(most, |time| most.min(time / 8))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::trials(200)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_alone_limits_no_trials() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(Budget::asked(None, None, 7), Budget::trials(7));
        assert_eq!(Budget::asked(None, second, 7), Budget { trials: None, time: second });
        assert_eq!(Budget::asked(Some(3), second, 7), Budget { trials: Some(3), time: second });
    }
}
