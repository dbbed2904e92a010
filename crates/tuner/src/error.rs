//! [`TuneError`]: errors that keep a run from starting or continuing.

use std::fmt;
use std::time::Duration;

use tensorwright::{Diagnostics, TargetError};
use tensorwright_measure::MeasureError;
use tensorwright_records::{Error as RecordsError, FLEET_FEATURE};

use crate::mode::Mode;

/// An error that keeps a run from starting or continuing. A failed candidate is an outcome, not an
/// error.
#[derive(Debug)]
#[non_exhaustive]
pub enum TuneError {
    /// The program cannot be compiled for the target.
    Program(Diagnostics),
    /// The target does not exist or cannot be tuned for.
    Target(TargetError),
    /// Candidates cannot be measured here.
    Measure(MeasureError),
    /// Records cannot be read.
    Records(RecordsError),
    /// There is no strategy of this name.
    UnknownStrategy(String),
    /// A strategy was asked for in a mode that does not search.
    NoSearch(Mode),
    /// The run of a fleet cannot continue.
    Lost {
        /// Its name.
        run: String,
        /// Why.
        reason: RecordsError,
    },
    /// A fleet was asked for without its server.
    NoServer,
    /// The time ran out before the first trial ended.
    NoTime(Duration),
    /// This build has no client for servers.
    NoFleet,
    /// A landscape cannot be recorded.
    Landscape(String),
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(error) => error.fmt(f),
            Self::Target(error) => write!(f, "{error}\n  help: {}", error.help()),
            Self::Measure(error) => error.fmt(f),
            Self::Records(error) => error.fmt(f),
            Self::UnknownStrategy(name) => {
                let known: Vec<&str> =
                    tensorwright_search::registry::STRATEGIES.iter().map(|s| s.name).collect();
                write!(
                    f,
                    "there is no strategy `{name}`\n  help: the strategies are {}",
                    known.join(", ")
                )
            }
            Self::NoSearch(mode) => write!(
                f,
                "mode `{mode}` takes the choice of the cost model and has no search strategy\n  help: leave the strategy out, or \
                 choose the mode `autotune`"
            ),
            Self::Lost { run, reason } => {
                write!(f, "run {run} cannot continue: {reason}\n  help: {}", reason.help())?;
                f.write_str(
                    "; `tensorwright fleet status` shows classes and `fleet top` runs, and all that was measured is in the records",
                )
            }
            Self::NoServer => f.write_str(
                "a fleet needs the server of its queue\n  help: name it with --db postgres://USER@HOST/DATABASE, or \
                 TENSORWRIGHT_DB",
            ),
            Self::NoTime(time) => write!(
                f,
                "no trial ended within {} s: they include the start, which computes the results that kernels are \
                 checked against and asks the machine what it can do\n  help: give it more time, or a number of trials \
                 instead",
                time.as_secs_f64()
            ),
            Self::NoFleet => {
                write!(f, "this build has no client for servers\n  help: {FLEET_FEATURE}")
            }
            Self::Landscape(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for TuneError {}

impl From<TargetError> for TuneError {
    fn from(error: TargetError) -> Self {
        Self::Target(error)
    }
}

impl From<Diagnostics> for TuneError {
    fn from(error: Diagnostics) -> Self {
        Self::Program(error)
    }
}

impl From<MeasureError> for TuneError {
    fn from(error: MeasureError) -> Self {
        Self::Measure(error)
    }
}

impl From<RecordsError> for TuneError {
    fn from(error: RecordsError) -> Self {
        Self::Records(error)
    }
}
