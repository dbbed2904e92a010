//! Warm start: what earlier runs found about this and similar programs.

use tensorwright::Schedule;
use tensorwright_outcome::Outcome;
use tensorwright_policy::ScheduleSpace;
use tensorwright_records::{
    Claim, Claims, Key, Near, Origin, RunFilter, RunId, RunSummary, Store, Trial,
};
use tensorwright_space::parameter::Domain;
use tensorwright_space::{Parameter, Point};

use crate::bandit::{ArmPoint, SourceBandit};
use crate::mode::Mode;
use crate::names::{RecordNames, canonical_of, described};
use crate::tuner::Tuner;

/// The most schedules of similar keys to try.
const MOST_NEAR: usize = 4;

/// The most trials of earlier runs to report to the search, the latest first.
const MOST_RECALLED: usize = 20_000;

/// An unfinished run that this process has claimed.
#[derive(Debug)]
pub(crate) struct UnfinishedRun {
    pub(crate) run: RunId,
    /// The number of its last trial.
    pub(crate) last: u64,
    /// The number of its candidates that were built.
    pub(crate) built: u64,
    pub(crate) claim: Claim,
}

/// What the records know before a run starts.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    /// An unfinished run of the same command.
    pub(crate) unfinished: Option<UnfinishedRun>,
    /// Trials of the same key and space, with their runs.
    pub(crate) trials: Vec<(RunId, Trial)>,
    /// Candidates of a resumed run that remote workers are still trying.
    pub(crate) out: Vec<Trial>,
    /// Schedules to try first: the bests of this key and of similar ones.
    pub(crate) schedules: Vec<(Schedule, Origin)>,
    /// Points to try first, with the indices of their arms.
    pub(crate) points: Vec<ArmPoint>,
}

impl RunHistory {
    /// Reads the records. Unreadable ones count as absent.
    pub(crate) fn read(
        tuner: &Tuner,
        (store, claims): (&dyn Store, &Claims),
        (key, names): (&Key, &RecordNames<'_>),
        spaces: &[ScheduleSpace],
        space_hash: &str,
    ) -> Self {
        let mut past = Self::default();
        // A one-shot run is too short to be left unfinished.
        if tuner.fresh || tuner.mode == Mode::OneShot {
            return past;
        }
        // The server knows what a fleet has tried.
        if tuner.remote.is_none() {
            past.runs(tuner, (store, claims), key, space_hash);
        }
        if tuner.mode == Mode::Top5 {
            return past;
        }
        if let Ok(Some(best)) = store.best(key) {
            past.try_first(names.canonical(&best.trial.schedule), Origin::Record);
        }
        let near = store.nearest(key, &tuner.sizes, MOST_NEAR).unwrap_or_default();
        for near in &near {
            past.try_first(canonical_of(&near.best.trial.schedule, &near.program), Origin::Near);
            past.points.extend(translate(tuner, near, spaces));
        }
        past.schedules.retain(|(schedule, _)| tuner.goal.precision.allows(schedule.precision()));
        past
    }

    fn try_first(&mut self, schedule: Option<Schedule>, origin: Origin) {
        self.schedules.extend(schedule.map(|schedule| (schedule, origin)));
    }

    fn runs(
        &mut self,
        tuner: &Tuner,
        (store, claims): (&dyn Store, &Claims),
        key: &Key,
        space_hash: &str,
    ) {
        let filter = RunFilter { key: Some(key.clone()), limit: 50, ..RunFilter::default() };
        let runs = store.runs(&filter).unwrap_or_default();
        let is_mine =
            |run: &RunSummary| run.info.strategy == tuner.chooser() && run.info.seed == tuner.seed;
        // Where the model chooses, only trials of the same choice count.
        let is_wanted = |run: &&RunSummary| tuner.mode == Mode::Autotune || is_mine(run);
        let mut has_finished = false;
        for run in runs.iter().filter(|run| run.info.space == space_hash).filter(is_wanted) {
            let wanted = is_mine(run) && !has_finished && self.unfinished.is_none();
            // Claim it before reading its trials: until then its process may write more.
            let claim = wanted.then(|| claims.take_over(&run.info.id)).flatten();
            let claim = claim.filter(|_| is_unfinished(store, run));
            let trials = all_trials(store, &run.info.id);
            if let Some(claim) = claim {
                let last = trials.iter().map(|trial| trial.number).max().unwrap_or(0);
                let built = trials.iter().filter(|t| t.outcome.is_trial()).count() as u64;
                let run = run.info.id.clone();
                self.unfinished = Some(UnfinishedRun { run, last, built, claim });
            }
            has_finished |= is_mine(run) && is_finished(run);
            self.trials.extend(trials.into_iter().map(|trial| (run.info.id.clone(), trial)));
            if self.trials.len() > MOST_RECALLED {
                return;
            }
        }
    }

    /// The observations to report to the searches.
    pub(crate) fn observations(&self, bandit: &SourceBandit) -> Vec<(ArmPoint, Outcome)> {
        let observation = |(_, trial): &(RunId, Trial)| {
            let place = bandit.place(trial)?;
            Some((place, trial.outcome.clone()))
        };
        self.trials.iter().filter_map(observation).collect()
    }
}

fn is_finished(run: &RunSummary) -> bool {
    run.end.as_ref().is_some_and(|end| end.status != "interrupted")
}

/// Whether a run has not ended yet or was interrupted.
fn is_unfinished(store: &dyn Store, run: &RunSummary) -> bool {
    let id = Some(run.info.id.as_str().to_owned());
    let now = store.runs(&RunFilter { id, ..RunFilter::default() }).unwrap_or_default();
    now.first().is_some_and(|now| !is_finished(now))
}

fn all_trials(store: &dyn Store, run: &RunId) -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    while trials.len() < MOST_RECALLED {
        let after = trials.last().map(|trial| trial.number);
        let Ok(page) = store.trials(run, after, 1000) else { break };
        if page.is_empty() {
            break;
        }
        trials.extend(page);
    }
    trials
}

/// Translates a point of a similar program to the space of the same algorithm: the same choices for
/// the same inner loops.
fn translate(tuner: &Tuner, near: &Near, spaces: &[ScheduleSpace]) -> Option<ArmPoint> {
    let program = described(&near.program)?.canonically_named();
    // The algorithms its run chose from.
    let goal = tuner.goal_here().with_precision(near.key.precision);
    let options = tuner.options_of(&program).ok()?;
    let others = ScheduleSpace::alternatives(program.ir(), &goal, &options).ok()?;
    let trial = &near.best.trial;
    let other = others.iter().find(|space| space.algorithm() == trial.algorithm)?;
    let point = Point::new(trial.point.clone());
    if !other.search_space().contains(&point) {
        return None;
    }
    let arm = spaces.iter().position(|space| space.algorithm() == other.algorithm())?;
    let space = &spaces[arm];
    let from = other.search_space().parameters();
    let start = space.start();
    let parameters = space.search_space().parameters().iter().enumerate();
    let ranks: Box<[u32]> = parameters
        .map(|(place, to)| {
            let same = from.iter().position(|parameter| parameter.name() == to.name());
            same.and_then(|same| carry(&from[same], point.rank(same), to))
                .unwrap_or(start.rank(place))
        })
        .collect();
    Some(ArmPoint { arm, point: Point::new(ranks) })
}

/// The rank of the value of `to` that corresponds to a value of `from`.
fn carry(from: &Parameter, rank: u32, to: &Parameter) -> Option<u32> {
    match (from.domain(), to.domain()) {
        (Domain::Factorization(a), Domain::Factorization(b)) => {
            let inner = a.value(rank).get(1..)?;
            b.rank_of_inner(inner)
        }
        (Domain::Permutation(_), Domain::Permutation(_)) => (rank < to.count()).then_some(rank),
        _ => {
            let text = from.text(rank);
            (0..to.count()).find(|rank| to.text(*rank) == text)
        }
    }
}
