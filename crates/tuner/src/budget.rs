//! [`Budget`]: when a run ends.

use std::time::Duration;

/// When a run ends: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// After so many trials: candidates that were built. What rules refuse beforehand costs nothing.
    pub trials: Option<u64>,
    /// After so long, with the start of the run, and with the finals, which take a second at least.
    pub time: Option<Duration>,
}

impl Budget {
    /// So many trials.
    #[must_use]
    pub fn trials(trials: u64) -> Self {
        Self { trials: Some(trials), time: None }
    }

    /// As many trials as there is time for.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self { trials: None, time: Some(time) }
    }

    /// What somebody asks for; so many trials if nothing is said.
    #[must_use]
    pub fn asked(trials: Option<u64>, time: Option<Duration>, otherwise: u64) -> Self {
        let trials = trials.or_else(|| time.is_none().then_some(otherwise));
        Self { trials, time }
    }

    /// For how long finalists are timed, if their calls are not long.
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
