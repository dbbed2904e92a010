//! What a run tells whoever watches, and what it ends with.

use std::time::Duration;

use serde::Serialize;
use tensorwright::Schedule;
use tensorwright_outcome::{Outcome, Tally};
use tensorwright_records::{Key, Origin};

use crate::defects::Defects;
use crate::mode::Mode;
use crate::short::{about, roughly};

/// Something that happened in a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The space is generated, the children run, the expected results are there.
    Started {
        /// What is known at the start.
        progress: &'a Progress,
        /// How much is measured before a choice.
        mode: Mode,
        /// The number of points of the space, as text.
        space: String,
        /// Trials of an earlier run that this one continues.
        resumed: u64,
        /// Schedules of similar programs or machines that are tried first.
        warm: usize,
        /// The name of a run over a fleet, by which another process can go on with it.
        fleet: Option<String>,
    },
    /// A candidate came back.
    Trial {
        /// Its number.
        number: u64,
        /// What became of it.
        outcome: &'a Outcome,
        /// Whether it is the best so far.
        is_best: bool,
        /// How far the run is.
        progress: &'a Progress,
    },
    /// Nothing happened for a while.
    Waiting(&'a Progress),
    /// The search is over; the best candidates are measured again in turns.
    Finalists {
        /// How many.
        count: usize,
        /// How far the run is.
        progress: &'a Progress,
    },
    /// Records cannot be written at the moment; they are kept and written later.
    RecordsWait(String),
    /// A record cannot be kept, now or later, and why.
    RecordRefused(String),
}

impl Event<'_> {
    /// What an event says to people; nothing where the progress says it.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        Some(match self {
            Self::Started { progress, mode, space, resumed, warm, .. } => {
                started(*mode, space, progress.roof_seconds, *resumed, *warm)
            }
            Self::Finalists { count: 1, .. } => "measuring 1 finalist again".to_owned(),
            Self::Finalists { count, .. } => format!("measuring {count} finalists again, in turns"),
            Self::RecordsWait(why) => format!("records wait and will be written later: {why}"),
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
        line.push_str(&format!("; going on after {resumed} trials"));
    }
    match warm {
        0 => {}
        1 => line.push_str("; 1 schedule from the records first"),
        warm => line.push_str(&format!("; {warm} schedules from the records first")),
    }
    line
}

/// How far a run is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Candidates that were built.
    pub trials: u64,
    /// How many there may be; `None` if only time ends the run.
    pub budget: Option<u64>,
    /// How long it runs, with its start.
    pub elapsed: Duration,
    /// How long it may run.
    pub time: Option<Duration>,
    /// The seconds of the default schedule.
    pub default_seconds: Option<f64>,
    /// The seconds of the best candidate.
    pub best_seconds: Option<f64>,
    /// Floating-point operations of a call.
    pub flops: f64,
    /// The seconds that no schedule can beat on this machine.
    pub roof_seconds: f64,
    /// Outcomes by kind.
    pub tally: Tally,
    /// Those of candidates that a search over pipelines proposed, with the reasons of those that it could not make.
    pub pipelines: Tally,
    /// The best seconds after every trial, for a curve.
    pub curve: Vec<f64>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The budget is used.
    Finished,
    /// The space is.
    Exhausted,
    /// Somebody stopped it.
    Interrupted,
}

impl Status {
    /// The word under which it is recorded.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Exhausted => "exhausted",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How long the parts of a run took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Phases {
    /// Before the first proposal: children, and the results that kernels are checked against.
    pub start: Duration,
    /// Trials.
    pub search: Duration,
    /// The best candidates, measured again in turns.
    pub finals: Duration,
}

/// The schedule that won.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Winner {
    /// The schedule.
    pub schedule: Schedule,
    /// Where it comes from.
    pub origin: Origin,
    /// The seconds of a call, measured in turns with the default schedule.
    pub seconds: f64,
    /// The seconds of the default schedule in the same turns.
    pub default_seconds: f64,
    /// Whether it is faster than what was there before.
    pub gain: Gain,
}

/// Whether a run found something faster than the incumbent: the best of earlier runs, or else the default
/// schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gain {
    /// Something was faster in the rounds that were timed in turns.
    Significant {
        /// The probability of such rounds if it were not.
        p_value: f64,
    },
    /// Nothing was, and the incumbent stays.
    None,
}

/// What a run ends with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tuned {
    /// The schedule that won; the default one if nothing beat it.
    pub winner: Winner,
    /// How the run ended.
    pub status: Status,
    /// How far it came.
    pub progress: Progress,
    /// The key of the records.
    pub key: Key,
    /// The run's name in the records.
    pub run: String,
    /// How long its parts took.
    pub phases: Phases,
    /// The time that the strategy itself used.
    pub strategy_time: Duration,
    /// The time that candidates took to be built, checked and timed; building overlaps the rest.
    pub spent: [Duration; 3],
    /// Peaks of the machine: GFLOP/s and GB/s.
    pub peaks: (f64, f64),
    /// Records that wait because the database cannot be written, with the reason.
    pub waiting: Option<(usize, String)>,
    /// Records that waited and that the database does not take; they are in a file beside it.
    pub rejected: u64,
    /// Candidates that show a defect of the compiler.
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
            "search space: 480 schedules; going on after 12 trials; 3 schedules from the records first"
        );
        assert_eq!(
            started(Mode::Top5, "480", 1.3e-3, 0, 1),
            "top5: the five best by the model are measured; lower bound from the roofline: 1.3 ms; \
             1 schedule from the records first"
        );
    }
}
