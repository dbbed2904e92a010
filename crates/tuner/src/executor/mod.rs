//! [`Executor`]: tries candidates and stores their outcomes.
//!
//! Either child processes build and time candidates and the journal stores their outcomes, or a
//! fleet and its server do both.

#[cfg(feature = "postgres")]
mod fleet;

use std::time::{Duration, Instant};

use tensorwright::Schedule;
use tensorwright_measure::{Config, Finalist, MeasureError, Measurer, Roofline, TrialResult};
use tensorwright_records::{
    Best, Claim, Declared, Error, Journal, Kept, Key, ProgramInfo, Result, RunEnd, RunId, RunInfo,
    Trial,
};

use crate::candidates::Candidate;
use crate::error::TuneError;
use crate::tuner::Tuner;
use crate::warm_start::{RunHistory, UnfinishedRun};

/// Candidates in flight in a local run: one is timed, one waits, others are built. With more, the
/// search would propose with less feedback.
pub(crate) const DEPTH: usize = 4;

/// A candidate to submit.
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "children here need the schedule alone")
)]
pub(crate) struct Submission<'c> {
    pub(crate) candidate: &'c Candidate,
    /// The point and its algorithm, if it belongs to a space.
    pub(crate) point: Vec<u32>,
    pub(crate) algorithm: String,
}

/// Tries the candidates of a run.
pub(crate) enum Executor {
    /// Child processes of this process. The claim keeps other processes from resuming the run while
    /// this one lives.
    Local { measurer: Box<Measurer>, claim: Option<Claim> },
    /// Remote workers.
    #[cfg(feature = "postgres")]
    Fleet(Box<fleet::FleetExecutor>),
}

/// A run about to start or to be resumed.
pub(crate) struct OpenRun {
    pub(crate) executor: Executor,
    pub(crate) run: RunId,
    pub(crate) past: RunHistory,
    /// The number of the next trial and the number of built candidates, if the run is resumed.
    pub(crate) resumed: Option<(u64, u64)>,
}

impl Executor {
    /// Opens an executor for a run, with its history. `info` is what the run will be recorded as.
    pub(crate) fn open(
        tuner: &Tuner,
        journal: &mut Journal,
        key: &Key,
        info: &RunInfo,
        mut past: RunHistory,
    ) -> std::result::Result<OpenRun, TuneError> {
        if let Some(remote) = &tuner.remote {
            #[cfg(feature = "postgres")]
            return fleet::FleetExecutor::open(tuner, remote, journal, key, info, past);
            #[cfg(not(feature = "postgres"))]
            {
                let (_, _, _) = (remote, key, info);
                return Err(TuneError::NoFleet);
            }
        }
        let claims = journal.claims();
        let mut config = Config::new(tuner.worker.clone(), tuner.goal.target.clone());
        config.threads = tuner.goal.threads();
        config.seed = tuner.seed;
        let measurer = Box::new(measurer(tuner, config)?);
        let (run, claim, resumed) = match past.unfinished.take() {
            Some(UnfinishedRun { run, last, built, claim }) => {
                (run, Some(claim), Some((last + 1, built)))
            }
            None => {
                let run = info.id.clone();
                let claim = claims.begin(&run);
                (run, claim, None)
            }
        };
        Ok(OpenRun { executor: Self::Local { measurer, claim }, run, past, resumed })
    }

    /// Whether the server stores the outcomes itself, under the candidates' numbers.
    pub(crate) fn keeps_trials(&self) -> bool {
        !matches!(self, Self::Local { .. })
    }

    /// The error that keeps the run from continuing, if there is one.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        match self {
            Self::Local { .. } => None,
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.failure(),
        }
    }

    /// Records the start of the run.
    pub(crate) fn begin(
        &mut self,
        journal: &mut Journal,
        key: &Key,
        program: &ProgramInfo,
        info: &RunInfo,
    ) -> Result<Kept> {
        match self {
            Self::Local { .. } => journal.begin_run(key, program, info),
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.begin(key, program, info).map(|()| Kept::Database),
        }
    }

    pub(crate) fn roofline(&self) -> Roofline {
        match self {
            Self::Local { measurer, .. } => measurer.roofline(),
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.roofline(),
        }
    }

    /// How many more candidates it accepts now.
    pub(crate) fn room(&self) -> usize {
        match self {
            Self::Local { measurer, .. } => DEPTH.saturating_sub(measurer.in_flight()),
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.room(),
        }
    }

    pub(crate) fn submit(&mut self, number: u64, what: Submission<'_>) {
        match self {
            Self::Local { measurer, .. } => measurer.submit(number, &what.candidate.schedule),
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.submit(number, what),
        }
    }

    /// Tries an object file instead of compiling. Fleets take no machine code.
    pub(crate) fn submit_object(&mut self, number: u64, schedule: &Schedule, object: Vec<u8>) {
        match self {
            Self::Local { measurer, .. } => measurer.submit_object(number, schedule, object),
            #[cfg(feature = "postgres")]
            Self::Fleet(_) => {}
        }
    }

    pub(crate) fn next(&mut self, wait: Duration) -> Option<TrialResult> {
        match self {
            Self::Local { measurer, .. } => measurer.next(wait),
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.next(wait),
        }
    }

    /// Drops all candidates in flight.
    pub(crate) fn cancel(&mut self) {
        match self {
            Self::Local { measurer, .. } => measurer.cancel(),
            #[cfg(feature = "postgres")]
            Self::Fleet(_) => {}
        }
    }

    pub(crate) fn set_best(&mut self, seconds: f64) {
        match self {
            Self::Local { measurer, .. } => measurer.set_best(seconds),
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.set_best(seconds),
        }
    }

    /// Times schedules in turns on one machine; locally until `until` at the latest.
    pub(crate) fn finalists(
        &mut self,
        number: u64,
        schedules: &[Schedule],
        time: Duration,
        until: Option<Instant>,
    ) -> Vec<Finalist> {
        let _ = number;
        match self {
            Self::Local { measurer, .. } => match until {
                Some(until) => measurer.finalists_by(schedules, time, until),
                None => measurer.finalists(schedules, time),
            },
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.finalists(number, schedules, time),
        }
    }

    /// Stores a trial, unless the server does.
    pub(crate) fn keep(
        &self,
        journal: &mut Journal,
        run: &RunId,
        trial: &Trial,
    ) -> Option<Result<Kept>> {
        (!self.keeps_trials()).then(|| journal.insert(run, trial))
    }

    /// The declared best of the key, also for a run started without records.
    pub(crate) fn best(&mut self, journal: &mut Journal, key: &Key) -> Option<Best> {
        let best = match self {
            Self::Local { .. } => journal.store().ok()?.best(key).ok()?,
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.best(),
        };
        best.filter(|best| best.declared.is_some())
    }

    pub(crate) fn declare(
        &mut self,
        journal: &mut Journal,
        key: &Key,
        best: &Declared,
    ) -> Result<Kept> {
        match self {
            Self::Local { .. } => journal.declare_best(key, best),
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.declare(best).map(|()| Kept::Database),
        }
    }

    /// Records the end of the run.
    pub(crate) fn end(
        &mut self,
        journal: &mut Journal,
        run: &RunId,
        end: &RunEnd,
        is_interrupted: bool,
    ) -> Result<Kept> {
        match self {
            Self::Local { claim, .. } => {
                let kept = journal.end_run(run, end);
                // Retries waiting records; they are in the file beside the database anyway.
                let _ = journal.flush();
                if let Some(claim) = claim.take().filter(|_| !is_interrupted) {
                    claim.finish();
                }
                kept
            }
            #[cfg(feature = "postgres")]
            Self::Fleet(fleet) => fleet.end(end).map(|()| Kept::Database),
        }
    }
}

/// Starts the local measurer, within the time of the run.
fn measurer(tuner: &Tuner, mut config: Config) -> std::result::Result<Measurer, TuneError> {
    let Some(time) = tuner.budget.time else { return Ok(Measurer::start(&tuner.program, config)?) };
    config.expected_deadline = config.expected_deadline.min(time);
    config.start_deadline = config.start_deadline.min(time);
    let begun = Instant::now();
    Measurer::start(&tuner.program, config).map_err(|error| match error {
        MeasureError::Expected(_) | MeasureError::Worker(_) if begun.elapsed() >= time => {
            TuneError::NoTime(time)
        }
        error => error.into(),
    })
}
