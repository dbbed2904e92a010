//! [`MeasureError`]: errors that prevent all measurement.

use std::fmt;
use std::io;

/// An error that prevents all measurement. A failure of a single candidate is an
/// [`Outcome`](tensorwright_outcome::Outcome) instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum MeasureError {
    /// The system refuses a resource that measurement needs.
    System {
        /// The failed action.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A child process cannot be started.
    Spawn {
        /// The program that was to be started.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// A child process started but cannot do its work.
    Worker(String),
    /// The expected results cannot be computed.
    Expected(String),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { what, error } => write!(f, "cannot {what}: {error}"),
            Self::Spawn { program, error } => {
                write!(f, "cannot start `{program}` to measure in: {error}")
            }
            Self::Worker(reason) => write!(f, "the measuring process does not work: {reason}"),
            Self::Expected(reason) => {
                write!(f, "cannot compute the results that kernels are checked against: {reason}")
            }
        }
    }
}

impl std::error::Error for MeasureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { error, .. } | Self::Spawn { error, .. } => Some(error),
            Self::Worker(_) | Self::Expected(_) => None,
        }
    }
}
