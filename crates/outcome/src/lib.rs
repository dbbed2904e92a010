//! [`Outcome`]: the result of building, checking and timing a candidate.
//!
//! Searches learn from outcomes, measurement makes them and records store them. The enum is closed
//! on purpose: every user handles each kind, and a new kind is a decision for all of them.

mod seconds;
mod tally;
mod timing;

pub use seconds::Seconds;
pub use tally::Tally;
pub use timing::Timing;

use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of building, checking and timing a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Built, checked against the reference, and timed.
    Measured(Timing),
    /// Refused before anything was built.
    Illegal {
        /// The rule that refuses it: `registers`, `unroll`, the name of a primitive.
        rule: String,
        /// Why.
        reason: String,
    },
    /// The compiler refused it, or the compiling process died.
    BuildFailed {
        /// What the compiler said.
        reason: String,
    },
    /// Its results differ from the reference.
    WrongResult {
        /// The first elements that differ, and by how much.
        reason: String,
    },
    /// The process that ran it died.
    Crashed {
        /// The signal or exit code.
        reason: String,
        /// What the process wrote to its standard error, shortened.
        stderr: String,
    },
    /// It missed a deadline.
    TimedOut {
        /// The phase: building, checking, timing.
        phase: Phase,
        /// The deadline in seconds.
        limit: f64,
    },
    /// The device was lost; the candidate is not to blame and may be tried again.
    DeviceLost,
}

/// The phase of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Applying the schedule, lowering, compiling.
    Build,
    /// The first call, whose result is checked.
    Check,
    /// The timed calls.
    Time,
}

impl Outcome {
    /// The names of the kinds, in listing order.
    pub const KINDS: [&str; 7] = [
        "measured",
        "illegal",
        "build-failed",
        "wrong-result",
        "crashed",
        "timed-out",
        "device-lost",
    ];

    /// The index of the kind in [`Outcome::KINDS`].
    #[must_use]
    pub fn kind_index(&self) -> usize {
        match self {
            Self::Measured(_) => 0,
            Self::Illegal { .. } => 1,
            Self::BuildFailed { .. } => 2,
            Self::WrongResult { .. } => 3,
            Self::Crashed { .. } => 4,
            Self::TimedOut { .. } => 5,
            Self::DeviceLost => 6,
        }
    }

    /// The name of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        Self::KINDS[self.kind_index()]
    }

    /// Whether it counts as a trial: a candidate that was built, or that the compiler tried to
    /// build. Candidates refused by rules or lost with a device do not count.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        !matches!(self, Self::Illegal { .. } | Self::DeviceLost)
    }

    /// The timing of a measured candidate.
    #[must_use]
    pub fn timing(&self) -> Option<&Timing> {
        match self {
            Self::Measured(timing) => Some(timing),
            _ => None,
        }
    }

    /// The cost that ranks candidates: the seconds of a call on an undisturbed machine.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.timing().map(|timing| timing.seconds)
    }

    /// The short reason why it was not measured.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Measured(_) => None,
            Self::Illegal { rule, reason } => Some(format!("{rule}: {reason}")),
            Self::BuildFailed { reason }
            | Self::WrongResult { reason }
            | Self::Crashed { reason, .. } => Some(reason.clone()),
            Self::TimedOut { phase, limit } => {
                Some(format!("{phase} took more than {} s", in_short(*limit)))
            }
            Self::DeviceLost => Some("the device went away".to_owned()),
        }
    }

    /// The same outcome with a reworded reason.
    #[must_use]
    pub fn reworded(mut self, words: impl FnOnce(&str) -> String) -> Self {
        match &mut self {
            Self::Illegal { reason, .. }
            | Self::BuildFailed { reason }
            | Self::WrongResult { reason }
            | Self::Crashed { reason, .. } => *reason = words(reason),
            Self::Measured(_) | Self::TimedOut { .. } | Self::DeviceLost => {}
        }
        self
    }
}

/// Formats seconds shortly: computed limits have many digits.
fn in_short(seconds: f64) -> String {
    let digits = if seconds < 0.1 { 3 } else { 1 };
    let text = format!("{seconds:.digits$}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.timing(), self.reason()) {
            (Some(timing), _) => timing.fmt(f),
            (None, reason) => write!(f, "{}: {}", self.kind(), reason.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Build => "building",
            Self::Check => "the checked call",
            Self::Time => "timing",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_texts_belong_together() {
        let illegal = Outcome::Illegal { rule: "unroll".into(), reason: "too much code".into() };
        assert_eq!(illegal.kind(), "illegal");
        assert_eq!(illegal.to_string(), "illegal: unroll: too much code");
        let late = Outcome::TimedOut { phase: Phase::Check, limit: 2.0 };
        assert_eq!(late.to_string(), "timed-out: the checked call took more than 2 s");
        let late = Outcome::TimedOut { phase: Phase::Time, limit: 3.400_000_000_000_000_4 };
        assert_eq!(late.to_string(), "timed-out: timing took more than 3.4 s");
        let late = Outcome::TimedOut { phase: Phase::Time, limit: 0.012_345 };
        assert_eq!(late.to_string(), "timed-out: timing took more than 0.012 s");
        let timing = Timing { seconds: 0.0021, spread: 0.02, runs: 12, ..Timing::default() };
        let measured = Outcome::Measured(timing);
        assert_eq!(measured.to_string(), "2.100 ms ±2 % (12 runs)");
        assert_eq!(measured.cost(), Some(0.0021));
    }
}
