//! A run: its start, the search, and the finals.

mod finals;
mod search;
mod start;

use std::time::{Duration, Instant};

use tensorwright_kernel::Schedule;
use tensorwright_measure::{Measurer, Roofline};
use tensorwright_outcome::Outcome;
use tensorwright_records::{Claim, Journal, Kept, Key, Origin, RunEnd, RunId, Trial, TrialId};

use crate::arms::Arms;
use crate::candidates::{Candidate, Candidates};
use crate::defects::Defects;
use crate::error::TuneError;
use crate::event::{Event, Progress, Status, Tuned};
use crate::trust::verification;
use crate::tuner::Tuner;

/// Candidates that are out at a time: one is timed, one waits for it, others are built. More would be
/// proposed with less known.
pub(crate) const DEPTH: usize = 4;

/// Candidates that are measured again at the end.
const FINALISTS: usize = 6;

/// A run.
struct Session<'a> {
    tuner: &'a Tuner,
    journal: &'a mut Journal,
    watch: &'a mut dyn FnMut(&Event<'_>),
    begun: Instant,
    arms: Arms,
    strategy_time: Duration,
    spent: [Duration; 3],
    measurer: Measurer,
    roofline: Roofline,
    key: Key,
    run: RunId,
    /// Keeps others from going on with the run while this process lives.
    claim: Option<Claim>,
    candidates: Candidates,
    /// Measured schedules, for the finals.
    measured: Vec<(f64, Candidate, Option<TrialId>)>,
    /// The default schedule, and its number once it is measured as a candidate.
    default: (Schedule, Option<u64>),
    /// The schedules that sources proposed, each once.
    chosen: usize,
    next_trial: u64,
    refused: u64,
    progress: Progress,
    complained: bool,
    defects: Defects,
}

impl Tuner {
    /// Runs. Every outcome is committed to the journal before the search is told of it.
    ///
    /// # Errors
    /// If candidates cannot be measured at all. What happens to a single candidate is an outcome, not
    /// an error; records that cannot be written wait.
    pub fn run(
        &self,
        journal: &mut Journal,
        watch: &mut dyn FnMut(&Event<'_>),
    ) -> Result<Tuned, TuneError> {
        Ok(Session::start(self, journal, watch)?.run())
    }
}

impl Session<'_> {
    /// Searches, decides between the best, and closes the run in the records.
    fn run(mut self) -> Tuned {
        let status = self.search();
        self.measurer.cancel();
        let winner = self.finals();
        let ended = tensorwright_records::now();
        let end = RunEnd { ended, status: status.word().to_owned() };
        let kept = self.journal.end_run(&self.run, &end);
        self.note(kept);
        // What waits gets another chance; it is in the file beside the database anyway.
        let _ = self.journal.flush();
        if let Some(claim) = self.claim.take().filter(|_| status != Status::Interrupted) {
            claim.finish();
        }
        self.progress.elapsed = self.begun.elapsed();
        let waiting = self.journal.waiting();
        let why = self.journal.trouble().map(ToString::to_string).unwrap_or_default();
        Tuned {
            winner,
            status,
            progress: self.progress,
            key: self.key,
            run: self.run.to_string(),
            strategy_time: self.strategy_time,
            spent: self.spent,
            peaks: (self.roofline.peak_gflops, self.roofline.peak_gbps),
            waiting: (waiting > 0).then_some((waiting, why)),
            rejected: self.journal.rejected(),
            defects: self.defects,
        }
    }

    /// Says once that records wait, and always that one is refused.
    fn note(&mut self, kept: tensorwright_records::Result<Kept>) {
        match kept {
            Ok(Kept::Database) => self.complained = false,
            Ok(Kept::Waiting) if self.complained => {}
            Ok(Kept::Waiting) => {
                self.complained = true;
                let trouble = self.journal.trouble().map(ToString::to_string);
                (self.watch)(&Event::RecordsWait(trouble.unwrap_or_default()));
            }
            Err(error) => (self.watch)(&Event::RecordRefused(error.to_string())),
        }
    }

    /// Commits an outcome, and returns its number in the run.
    fn record(&mut self, candidate: &Candidate, outcome: &Outcome) -> u64 {
        let number = self.next_trial;
        self.next_trial += 1;
        let place = candidate.points.first();
        let in_space = place.filter(|place| self.arms.space(place.arm).is_some());
        let point = in_space.map(|place| place.point.ranks().to_vec());
        let mut trial = Trial::new(number, point.unwrap_or_default(), &candidate.text);
        trial.algorithm = place.map(|place| self.arms.algorithm(place)).unwrap_or_default();
        trial.origin.clone_from(&candidate.origin);
        trial.outcome = outcome.clone();
        trial.elapsed = self.begun.elapsed().as_secs_f64();
        let kept = self.journal.insert(&self.run, &trial);
        self.note(kept);
        number
    }

    /// Notes that a schedule was compared with the reference here, so that its first use need not do it
    /// again. Should that fail, the first use does.
    fn vouch(&mut self, text: &str) {
        let what = verification(&self.key, text);
        if let Ok(store) = self.journal.store() {
            let _ = store.note_verified(&what, true);
        }
    }

    /// Counts an outcome.
    fn count(&mut self, candidate: &Candidate, outcome: &Outcome) {
        self.progress.tally.add(outcome);
        if candidate.origin == Origin::Pipeline {
            self.progress.pipelines.add(outcome);
        }
    }

    /// Notes a time; says whether it is the best.
    fn lower_best(&mut self, seconds: f64) -> bool {
        let is_best = self.progress.best_seconds.is_none_or(|best| seconds < best);
        if is_best {
            self.progress.best_seconds = Some(seconds);
            self.measurer.set_best(seconds);
        }
        is_best
    }
}
