//! [`Budget`]: when a run ends.

use std::time::Duration;

/// When a run ends: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// After so many trials: candidates that were built. What rules refuse beforehand costs nothing.
    pub trials: u64,
    /// After so long, starting and measuring the finalists included.
    pub time: Option<Duration>,
}

impl Budget {
    /// So many trials.
    #[must_use]
    pub fn trials(trials: u64) -> Self {
        Self { trials, time: None }
    }

    /// As many trials as there is time for.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self { trials: u64::MAX, time: Some(time) }
    }

    /// How much of the time is kept for the finalists.
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
