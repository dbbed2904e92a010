//! [`Store`]: the interface of a database of records.

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

/// Selects runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFilter {
    /// Runs of this key.
    pub key: Option<Key>,
    /// Runs of definitions of this name.
    pub def: Option<String>,
    /// Runs whose name starts with this.
    pub id: Option<String>,
    /// The maximum number; 0 is no limit. The latest come first.
    pub limit: usize,
}

/// A database of records.
///
/// Writing is idempotent: an existing run, trial or declaration stays as it is.
pub trait Store {
    /// Its location.
    fn location(&self) -> &Location;

    /// The size of the records in bytes, without the log of the database.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn bytes(&self) -> Result<u64>;

    /// The query plan for the fastest trial of a key, as the database prints it.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn plan_of_best(&self) -> Result<String>;

    /// Sets how long to wait for other writers.
    ///
    /// # Errors
    /// If the database refuses it.
    fn set_patience(&mut self, patience: Duration) -> Result<()>;

    /// Removes all trials except the fastest of each key and the declared winners, and frees the
    /// space. Runs, programs, keys and counts by outcome stay.
    ///
    /// # Errors
    /// If the database cannot be written; then nothing is removed.
    fn collect(&mut self, what: Collection) -> Result<Collected>;

    /// Writes events in one transaction, which is on disk when this returns. Refused events do not
    /// affect the others.
    ///
    /// # Errors
    /// If the database cannot be written; then none of the events is.
    fn apply(&mut self, events: &[Event]) -> Result<Vec<Applied>>;

    /// The best of a key: the declared winner, or else the fastest measured trial; never one whose
    /// timing was cut short.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn best(&self, key: &Key) -> Result<Option<Best>>;

    /// The ranking of a key: the declared winner, then the fastest, each schedule once.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn ranked(&self, key: &Key, limit: usize) -> Result<Vec<Best>>;

    /// An installation's verdict on a schedule; `None` if it was not verified.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn verified(&self, what: &Verification) -> Result<Option<bool>>;

    /// Stores a verdict. If two disagree, the failure stays.
    ///
    /// # Errors
    /// If the database cannot be written.
    fn note_verified(&self, what: &Verification, passed: bool) -> Result<()>;

    /// The damaged records skipped since the last call.
    fn damage(&self) -> Vec<Damage>;

    /// The bests of similar keys, the most similar first: the same program with another compiler,
    /// on another machine or with other threads, then the same computation with other sizes, the
    /// nearest sizes first. The key itself is left out.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn nearest(&self, key: &Key, sizes: &BTreeMap<String, i64>, limit: usize) -> Result<Vec<Near>>;

    /// Why [`Store::best`] finds nothing; empty if it finds something.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn why_miss(&self, key: &Key) -> Result<Vec<Miss>>;

    /// Every key with its results; ordered by definition and sizes.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn keys(&self) -> Result<Vec<KeySummary>>;

    /// Runs, the latest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>>;

    /// At most `limit` trials of a run with numbers beyond `after`, in order.
    ///
    /// # Errors
    /// If the run is not known or the database cannot be read.
    fn trials(&self, run: &RunId, after: Option<u64>, limit: usize) -> Result<Vec<Trial>>;

    /// A program by its hash.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn program(&self, hash: &str) -> Result<Option<ProgramInfo>>;

    /// Every declared winner.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn declared(&self) -> Result<Vec<(Key, Declared)>>;

    /// Every key with removed trials, with the count of each kind of outcome.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn removed(&self) -> Result<Vec<(Key, Vec<u64>)>>;

    /// Records the start of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begin_run(&mut self, key: &Key, program: &ProgramInfo, run: &RunInfo) -> Result<RunId> {
        let begin = Event::Run { key: key.clone(), info: run.clone() };
        all_accepted(self.apply(&[Event::Program(program.clone()), begin])?)?;
        Ok(run.id.clone())
    }

    /// Stores a trial.
    ///
    /// # Errors
    /// If it cannot be written.
    fn insert(&mut self, run: &RunId, trial: &Trial) -> Result<TrialId> {
        let event = Event::Trial { run: run.clone(), trial: trial.clone() };
        all_accepted(self.apply(&[event])?)?;
        Ok(TrialId { run: run.clone(), number: trial.number })
    }

    /// Records the end of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    fn end_run(&mut self, run: &RunId, end: &RunEnd) -> Result<()> {
        all_accepted(self.apply(&[Event::End { run: run.clone(), end: end.clone() }])?)
    }

    /// Declares a winner, in place of an earlier one.
    ///
    /// # Errors
    /// If the trial was not measured for the key, or it cannot be written.
    fn declare_best(&mut self, key: &Key, best: &Declared) -> Result<()> {
        all_accepted(self.apply(&[Event::Best { key: key.clone(), best: best.clone() }])?)
    }

    /// Calls a function with every trial of the selected runs, one page in memory at a time.
    ///
    /// # Errors
    /// Errors of the function, and of the database.
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

/// The trials of a run, one page in memory at a time.
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
