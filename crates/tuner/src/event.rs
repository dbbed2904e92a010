//! Events and the result of a tuning run.

use std::time::Duration;

use serde::Serialize;
use tensorwright::Schedule;
use tensorwright_outcome::{Outcome, Tally};
use tensorwright_records::{Key, Origin};

use crate::defects::Defects;
use crate::mode::Mode;
use crate::short::{about, roughly};

/// An event of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The space is generated, the children run, and the expected results are computed.
    Started {
        /// The progress at the start.
        progress: &'a Progress,
        /// The mode.
        mode: Mode,
        /// The number of points of the space, as text.
        space: String,
        /// Trials of an earlier run that this one continues.
        resumed: u64,
        /// Schedules of similar programs or machines to try first.
        warm: usize,
        /// The name of a fleet's run, by which another process can resume it.
        fleet: Option<String>,
    },
    /// The outcome of a candidate.
    Trial {
        /// Its number.
        number: u64,
        /// Its outcome.
        outcome: &'a Outcome,
        /// Whether it is the best so far.
        is_best: bool,
        /// The progress.
        progress: &'a Progress,
    },
    /// Nothing happened for a while.
    Waiting(&'a Progress),
    /// The search is over; the best candidates are measured again in turns.
    Finalists {
        /// How many.
        count: usize,
        /// The progress.
        progress: &'a Progress,
    },
    /// Records cannot be written now; they are kept and written later.
    RecordsWait(String),
    /// The database refuses a record, and why.
    RecordRefused(String),
}

impl Event<'_> {
    /// The message of an event; `None` if the progress line shows it.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        Some(match self {
            Self::Started { progress, mode, space, resumed, warm, .. } => {
                started(*mode, space, progress.roof_seconds, *resumed, *warm)
            }
            Self::Finalists { count: 1, .. } => "measuring 1 finalist again".to_owned(),
            Self::Finalists { count, .. } => format!("measuring {count} finalists again, in turns"),
            Self::RecordsWait(why) => {
                format!("records cannot be written now and will be retried: {why}")
            }
            Self::RecordRefused(why) => format!("a record was not kept: {why}"),
            Self::Trial { .. } | Self::Waiting(_) => return None,
        })
    }
}

fn started(mode: Mode, space: &str, roof_seconds: f64, resumed: u64, warm: usize) -> String {
    let mut line = match mode {
        Mode::Autotune => format!("search space: {} schedules", about(space)),
        mode => format!("{mode}: {}", mode.summary()),
    };
    if roof_seconds > 0.0 {
        line.push_str(&format!("; lower bound from the roofline: {}", roughly(roof_seconds)));
    }
    if resumed > 0 {
        line.push_str(&format!("; resuming after {resumed} trials"));
    }
    match warm {
        0 => {}
        1 => line.push_str("; trying 1 schedule from the records first"),
        warm => line.push_str(&format!("; trying {warm} schedules from the records first")),
    }
    line
}

/// The progress of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Candidates that were built.
    pub trials: u64,
    /// The most trials; `None` if only time ends the run.
    pub budget: Option<u64>,
    /// The time since the run started.
    pub elapsed: Duration,
    /// The time limit.
    pub time: Option<Duration>,
    /// The seconds of the default schedule.
    pub default_seconds: Option<f64>,
    /// The seconds of the best candidate.
    pub best_seconds: Option<f64>,
    /// Floating-point operations of a call.
    pub flops: f64,
    /// The roofline's lower bound on the time of a call.
    pub roof_seconds: f64,
    /// Outcomes by kind.
    pub tally: Tally,
    /// Outcomes of candidates from the search over pipelines, with reasons for those it could not
    /// build.
    pub pipelines: Tally,
    /// The best seconds after every trial.
    pub curve: Vec<f64>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The budget is used up.
    Finished,
    /// The search has nothing left to try.
    Exhausted,
    /// The user stopped it.
    Interrupted,
}

impl Status {
    /// Its name in the records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Exhausted => "exhausted",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The durations of a run's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Phases {
    /// The start: child processes, and the results that kernels are checked against.
    pub start: Duration,
    /// The search.
    pub search: Duration,
    /// The finals: the best candidates measured again in turns.
    pub finals: Duration,
}

/// The winning schedule.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Winner {
    /// The schedule.
    pub schedule: Schedule,
    /// Its origin.
    pub origin: Origin,
    /// The seconds of a call, measured in turns with the default schedule.
    pub seconds: f64,
    /// The seconds of the default schedule in the same turns.
    pub default_seconds: f64,
    /// Whether it beats the incumbent.
    pub gain: Gain,
}

/// Whether a run found something faster than the incumbent: the best of earlier runs, or else the default
/// schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gain {
    /// It is faster in the rounds timed in turns.
    Significant {
        /// The probability of such rounds without a real difference.
        p_value: f64,
    },
    /// Nothing is faster; the incumbent stays.
    None,
}

/// The result of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tuned {
    /// The winner; the default schedule if nothing beat it.
    pub winner: Winner,
    /// How the run ended.
    pub status: Status,
    /// The progress at the end.
    pub progress: Progress,
    /// The key of the records.
    pub key: Key,
    /// The run's name in the records.
    pub run: String,
    /// The durations of its parts.
    pub phases: Phases,
    /// The time used by the strategy itself.
    pub strategy_time: Duration,
    /// The time spent building, checking and timing candidates; these overlap.
    pub spent: [Duration; 3],
    /// Peaks of the machine: GFLOP/s and GB/s.
    pub peaks: (f64, f64),
    /// How many records wait because the database cannot be written, and why.
    pub waiting: Option<(usize, String)>,
    /// Waiting records that the database refused; a file beside it has them.
    pub rejected: u64,
    /// The compiler defects it met.
    pub defects: Defects,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_says_what_its_numbers_are() {
        let space = "46725265384742343610349756035891200";
        assert_eq!(
            started(Mode::Autotune, space, 53.89e-6, 0, 0),
            "search space: 4.7e34 schedules; lower bound from the roofline: 54 us"
        );
        assert_eq!(
            started(Mode::Autotune, "480", 0.0, 12, 3),
            "search space: 480 schedules; resuming after 12 trials; trying 3 schedules from the records first"
        );
        assert_eq!(
            started(Mode::Top5, "480", 1.3e-3, 0, 1),
            "top5: the five best by the model are measured; lower bound from the roofline: 1.3 ms; \
             trying 1 schedule from the records first"
        );
    }
}
