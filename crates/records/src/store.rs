//! [`Store`]: what a store of records does, whichever database is under it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::answer::{Best, Damage, KeySummary, Miss, Near, RunSummary};
use crate::error::Result;
use crate::event::{Applied, Event};
use crate::key::Key;
use crate::location::Location;
use crate::model::{Declared, RunEnd, RunId, RunInfo, Trial, TrialId, Verification};
use crate::program::ProgramInfo;
use crate::sql::{Collected, Collection};

/// Which runs are meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFilter {
    /// Runs of this key.
    pub key: Option<Key>,
    /// Runs of definitions of this name.
    pub def: Option<String>,
    /// Runs whose name begins like this.
    pub id: Option<String>,
    /// At most so many; 0 is no limit. The latest come first.
    pub limit: usize,
}

/// A store of records.
///
/// Writing is idempotent: a run, a trial or a declaration that is there already is left as it is.
pub trait Store {
    /// Where it is.
    fn location(&self) -> &Location;

    /// The size of the records in bytes, without the log of the database.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn bytes(&self) -> Result<u64>;

    /// How the database finds the fastest trial of a key: the plan of that query, in its words.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn plan_of_best(&self) -> Result<String>;

    /// Waits for others that write as long as this from now on.
    ///
    /// # Errors
    /// If the database does not take it.
    fn set_patience(&mut self, patience: Duration) -> Result<()>;

    /// Removes all trials but the fastest of each key and the declared winners, and gives the space
    /// back. Runs, programs, keys and counts by outcome stay.
    ///
    /// # Errors
    /// If the database cannot be written; then nothing is removed.
    fn collect(&mut self, what: Collection) -> Result<Collected>;

    /// Writes events in one transaction, which is on disk when this returns. Events that cannot be
    /// kept are refused one by one and do not keep the others out.
    ///
    /// # Errors
    /// If the database cannot be written; then none of the events is.
    fn apply(&mut self, events: &[Event]) -> Result<Vec<Applied>>;

    /// The best of a key: the declared winner, or else the fastest that was measured; never one
    /// whose timing was cut short.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn best(&self, key: &Key) -> Result<Option<Best>>;

    /// The best of a key and those after it, the best first: the declared winner, then the fastest,
    /// each schedule once.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn ranked(&self, key: &Key, limit: usize) -> Result<Vec<Best>>;

    /// Whether a schedule was found right or wrong by an installation; `None` if it was not verified.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn verified(&self, what: &Verification) -> Result<Option<bool>>;

    /// Remembers what came of a verification. Of two that disagree, the failure stays.
    ///
    /// # Errors
    /// If the database cannot be written.
    fn note_verified(&self, what: &Verification, passed: bool) -> Result<()>;

    /// What was left out of answers since the last call because it is damaged.
    fn damage(&self) -> Vec<Damage>;

    /// The bests of similar keys, the most similar first: the same program with another compiler,
    /// on another machine or with other threads, then the same computation with other sizes,
    /// the nearest sizes first. The key itself is left out.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn nearest(&self, key: &Key, sizes: &BTreeMap<String, i64>, limit: usize) -> Result<Vec<Near>>;

    /// Why [`Store::best`] finds nothing; empty if it does find something.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn why_miss(&self, key: &Key) -> Result<Vec<Miss>>;

    /// Every key, with what is known for it; by definition and sizes.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn keys(&self) -> Result<Vec<KeySummary>>;

    /// Runs, the latest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>>;

    /// At most `limit` trials of a run in the order of their numbers, those beyond `after`.
    ///
    /// # Errors
    /// If the run is not known or the database cannot be read.
    fn trials(&self, run: &RunId, after: Option<u64>, limit: usize) -> Result<Vec<Trial>>;

    /// A program by its hash.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn program(&self, hash: &str) -> Result<Option<ProgramInfo>>;

    /// Every winner that was declared.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn declared(&self) -> Result<Vec<(Key, Declared)>>;

    /// Every key of which trials were removed, with how many there were of each kind of outcome.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn removed(&self) -> Result<Vec<(Key, Vec<u64>)>>;

    /// Notes that a run begins.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begin_run(&mut self, key: &Key, program: &ProgramInfo, run: &RunInfo) -> Result<RunId> {
        let begin = Event::Run { key: key.clone(), info: run.clone() };
        all_accepted(self.apply(&[Event::Program(program.clone()), begin])?)?;
        Ok(run.id.clone())
    }

    /// Keeps the outcome of a trial.
    ///
    /// # Errors
    /// If it cannot be written.
    fn insert(&mut self, run: &RunId, trial: &Trial) -> Result<TrialId> {
        let event = Event::Trial { run: run.clone(), trial: trial.clone() };
        all_accepted(self.apply(&[event])?)?;
        Ok(TrialId { run: run.clone(), number: trial.number })
    }

    /// Notes that a run ended.
    ///
    /// # Errors
    /// If it cannot be written.
    fn end_run(&mut self, run: &RunId, end: &RunEnd) -> Result<()> {
        all_accepted(self.apply(&[Event::End { run: run.clone(), end: end.clone() }])?)
    }

    /// Declares a winner, in place of an earlier one.
    ///
    /// # Errors
    /// If the trial is not a measured one of the key, or it cannot be written.
    fn declare_best(&mut self, key: &Key, best: &Declared) -> Result<()> {
        all_accepted(self.apply(&[Event::Best { key: key.clone(), best: best.clone() }])?)
    }

    /// Calls a function with every trial of the runs that are meant, a page in memory at a time.
    ///
    /// # Errors
    /// The function's, and if the database cannot be read.
    fn each_trial(
        &self,
        runs: &RunFilter,
        visit: &mut dyn FnMut(&RunSummary, Trial) -> Result<()>,
    ) -> Result<()> {
        for run in self.runs(runs)? {
            each_of_run(self, &run.info.id, &mut |trial| visit(&run, trial))?;
        }
        Ok(())
    }
}

/// The trials of a run, a page in memory at a time.
pub(crate) fn each_of_run<S: Store + ?Sized>(
    store: &S,
    run: &RunId,
    visit: &mut dyn FnMut(Trial) -> Result<()>,
) -> Result<()> {
    const PAGE: usize = 1000;
    let mut after = None;
    loop {
        let page = store.trials(run, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.number);
        page.into_iter().try_for_each(&mut *visit)?;
    }
}

/// The first refusal, if there is one.
pub(crate) fn all_accepted(applied: Vec<Applied>) -> Result<()> {
    applied.into_iter().try_for_each(|one| match one {
        Applied::Refused(error) => Err(error),
        Applied::Added | Applied::Known => Ok(()),
    })
}
