//! A tuning run: start, search and finals.

mod finals;
mod reserve;
mod search;
mod start;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tensorwright::Schedule;
use tensorwright_outcome::Outcome;
use tensorwright_records::{Journal, Kept, Key, Origin, RunEnd, RunId, Trial, TrialId};
use tracing::field::Empty;
use tracing::{Span, debug_span, info_span};

use crate::bandit::SourceBandit;
use crate::candidates::{Candidate, Candidates};
use crate::defects::Defects;
use crate::error::TuneError;
use crate::event::{Event, Phases, Progress, Status, Tuned};
use crate::executor::{Executor, Submission};
use crate::names::RecordNames;
use crate::tuner::Tuner;
use crate::verifier::verification;

/// The number of candidates in the finals.
const FINALISTS: usize = 6;

/// A run.
struct Session<'a> {
    tuner: &'a Tuner,
    journal: &'a mut Journal,
    watch: &'a mut dyn FnMut(&Event<'_>),
    /// The time when the run began, including its start.
    begun: Instant,
    bandit: SourceBandit,
    strategy_time: Duration,
    /// Time spent building, checking and timing all finished trials, and their number.
    spent: [Duration; 3],
    tried: u64,
    phases: Phases,
    executor: Executor,
    key: Key,
    names: RecordNames<'a>,
    run: RunId,
    candidates: Candidates,
    /// Tracing spans of the candidates in flight.
    spans: HashMap<u64, Span>,
    /// Measured schedules, for the finals.
    measured: Vec<(f64, Candidate, Option<TrialId>)>,
    /// The default schedule, and its number once it is measured.
    default: (Schedule, Option<u64>),
    /// The number of distinct schedules that the sources have proposed.
    chosen: usize,
    next_trial: u64,
    refused: u64,
    progress: Progress,
    complained: bool,
    defects: Defects,
}

impl Tuner {
    /// Runs the tuner. Every outcome is committed to the journal before the search learns of it.
    ///
    /// # Errors
    /// If candidates cannot be measured at all. A failure of a single candidate is an outcome, not
    /// an error; records that cannot be written wait.
    pub fn run(
        &self,
        journal: &mut Journal,
        watch: &mut dyn FnMut(&Event<'_>),
    ) -> Result<Tuned, TuneError> {
        let _span = info_span!("tune", def = self.program.name()).entered();
        let begun = Instant::now();
        let session = info_span!("start");
        session.in_scope(|| Session::start(self, journal, watch, begun))?.run()
    }
}

impl Session<'_> {
    /// Searches, runs the finals, and closes the run in the records.
    fn run(mut self) -> Result<Tuned, TuneError> {
        let status = info_span!("search").in_scope(|| self.search());
        self.executor.cancel();
        self.phases.search = self.begun.elapsed().saturating_sub(self.phases.start);
        // The run was taken over or cancelled.
        if let Some(reason) = self.executor.failure() {
            return Err(TuneError::Lost { run: self.run.to_string(), reason });
        }
        let mut winner = info_span!("finals").in_scope(|| self.finals());
        winner.schedule = self.tuner.in_own_names(winner.schedule);
        let ended = tensorwright_records::now();
        let end = RunEnd { ended, status: status.word().to_owned() };
        let is_interrupted = status == Status::Interrupted;
        let kept = self.executor.end(self.journal, &self.run, &end, is_interrupted);
        self.note(kept);
        let has_tried = self.progress.trials > 0 || winner.seconds.is_finite();
        if let (Status::Finished, Some(time), false) = (status, self.tuner.budget.time, has_tried) {
            return Err(TuneError::NoTime(time));
        }
        let roof = self.executor.roofline();
        self.progress.roof_seconds = roof.seconds;
        self.progress.elapsed = self.begun.elapsed();
        self.phases.finals =
            self.progress.elapsed.saturating_sub(self.phases.start + self.phases.search);
        let waiting = self.journal.waiting();
        let why = self.journal.trouble().map(ToString::to_string).unwrap_or_default();
        let tuned = Tuned {
            winner,
            status,
            progress: self.progress,
            key: self.key,
            run: self.run.to_string(),
            phases: self.phases,
            strategy_time: self.strategy_time,
            spent: self.spent,
            peaks: (roof.peak_gflops, roof.peak_gbps),
            waiting: (waiting > 0).then_some((waiting, why)),
            rejected: self.journal.rejected(),
            defects: self.defects,
        };
        Ok(tuned)
    }

    /// Reports once that records wait, and every refused record.
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

    /// The point of a candidate and its algorithm, as recorded.
    fn place_of(&self, candidate: &Candidate) -> (Vec<u32>, String) {
        let place = candidate.points.first();
        let in_space = place.filter(|place| self.bandit.space(place.arm).is_some());
        let point = in_space.map(|place| place.point.ranks().to_vec());
        let algorithm = place.map(|place| self.bandit.algorithm(place));
        (point.unwrap_or_default(), algorithm.unwrap_or_default())
    }

    /// Submits an admitted candidate.
    fn submit(&mut self, number: u64) {
        let Some(candidate) = self.candidates.get(number) else { return };
        let (point, algorithm) = self.place_of(candidate);
        let span = debug_span!(
            "trial",
            number,
            origin = %candidate.origin,
            algorithm,
            outcome = Empty,
            build_ms = Empty,
            check_ms = Empty,
            time_ms = Empty
        );
        self.spans.insert(number, span);
        self.executor.submit(number, Submission { candidate, point, algorithm });
    }

    /// Commits an outcome and returns its trial number. A fleet's server has already committed the
    /// outcomes of its workers, under the candidates' numbers.
    fn record(&mut self, id: u64, candidate: &Candidate, outcome: &Outcome) -> u64 {
        if self.executor.keeps_trials() {
            return id;
        }
        let number = self.next_trial;
        self.next_trial += 1;
        let (point, algorithm) = self.place_of(candidate);
        let mut trial = Trial::new(number, point, &candidate.text);
        trial.algorithm = algorithm;
        trial.origin.clone_from(&candidate.origin);
        trial.outcome = outcome.clone();
        trial.elapsed = self.begun.elapsed().as_secs_f64();
        if let Some(kept) = self.executor.keep(self.journal, &self.run, &trial) {
            self.note(kept);
        }
        number
    }

    /// Records that a schedule was compared with the reference here, so that its first use need not
    /// repeat it. If that cannot be stored, the first use verifies again.
    fn vouch(&mut self, text: &str) {
        // Workers have verified it on their machines, not here.
        if self.executor.keeps_trials() {
            return;
        }
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

    /// Updates the best time; returns whether it improved.
    fn lower_best(&mut self, seconds: f64) -> bool {
        let is_best = self.progress.best_seconds.is_none_or(|best| seconds < best);
        if is_best {
            self.progress.best_seconds = Some(seconds);
            self.executor.set_best(seconds);
        }
        is_best
    }
}
