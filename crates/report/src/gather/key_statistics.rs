//! [`KeyStatistics`]: statistics of a key's trials, gathered in one pass.

use std::collections::BTreeMap;

use tensorwright_outcome::{Outcome, Tally};
use tensorwright_records::{Result, RunSummary, Store, Trial, TrialId};

use super::Limits;
use super::fastest::Fastest;
use super::space::{Space, SpaceName, space_of};
use crate::curve::BestSoFar;
use crate::downsample::Downsampler;
use crate::meta::{Algorithm, Meta};
use crate::model::{Crash, Line, Proposals};
use crate::text::shortened;

/// The most candidates for computing parameter importance.
const MOST_POINTS: usize = 20_000;

const MOST_CRASHES: usize = 3;
const MOST_ORIGINS: usize = 64;
const MOST_SPACES: usize = 16;

/// A candidate in a plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlotPoint {
    pub(super) trial: u64,
    pub(super) seconds: f64,
    /// The index in [`KeyStatistics::groups`].
    pub(super) group: usize,
}

/// The runs of a strategy.
#[derive(Debug, Clone, Default)]
pub(super) struct StrategyRuns {
    pub(super) name: String,
    pub(super) trials: u64,
    pub(super) histories: Vec<(u64, BestSoFar)>,
}

/// Statistics of a key's trials, gathered in one pass.
#[derive(Debug)]
pub(super) struct KeyStatistics {
    pub(super) meta: Meta,
    pub(super) groups: Vec<StrategyRuns>,
    pub(super) dots: Downsampler<PlotPoint>,
    pub(super) spaces: BTreeMap<SpaceName, Space>,
    pub(super) fastest: Fastest,
    pub(super) tally: Tally,
    pub(super) crashes: Vec<Crash>,
    pub(super) origins: BTreeMap<String, Proposals>,
    /// The default schedule's seconds in each run, in which it is trial 0.
    pub(super) defaults: Vec<f64>,
    pub(super) lines: Vec<Line>,
}

impl KeyStatistics {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            meta: Meta::default(),
            groups: Vec::new(),
            dots: Downsampler::new(limits.dots),
            spaces: BTreeMap::new(),
            fastest: Fastest::default(),
            tally: Tally::default(),
            crashes: Vec::new(),
            origins: BTreeMap::new(),
            defaults: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Adds a run with all its trials, one page in memory at a time; the latest run comes first.
    pub(super) fn run(&mut self, store: &dyn Store, run: &RunSummary) -> Result<()> {
        const PAGE: usize = 1000;
        let meta = Meta::read(&run.info.meta);
        let group = self.group(&run.info.strategy);
        self.space(run, &meta);
        let mut history = BestSoFar::default();
        let mut after = None;
        let before = self.tally.trials();
        loop {
            let page = store.trials(&run.info.id, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = Some(last.number);
            page.iter().for_each(|trial| self.trial(run, trial, group, &mut history));
        }
        let trials = self.tally.trials() - before;
        self.lines.push(Line {
            id: run.info.id.clone(),
            strategy: run.info.strategy.clone(),
            seed: run.info.seed,
            trials,
            best: history.best(),
            started: run.info.started,
            end: run.end.clone(),
            command: meta.command.clone(),
        });
        self.groups[group].trials += trials;
        self.groups[group].histories.push((run.info.seed, history));
        self.meta = std::mem::take(&mut self.meta).or(meta);
        Ok(())
    }

    fn trial(&mut self, run: &RunSummary, trial: &Trial, group: usize, history: &mut BestSoFar) {
        self.tally.add(&trial.outcome);
        let timing = trial.outcome.timing();
        let timing = timing.filter(|timing| timing.seconds.is_finite() && timing.seconds > 0.0);
        // A time that was cut short shows how slow a candidate is, but is never the best.
        let full = timing.filter(|timing| !timing.cut).map(|timing| timing.seconds);
        let improves = history.observe(trial.number, trial.elapsed, full);
        self.origin(trial, full, improves);
        if let Some(seconds) = full {
            self.fastest.offer(run, trial, seconds);
            if trial.number == 0 {
                self.defaults.push(seconds);
            }
        }
        if let Some(seconds) = timing.map(|timing| timing.seconds) {
            self.dots.push(|| PlotPoint { trial: trial.number, seconds, group });
            if let Some(space) = self.spaces.get_mut(&space_of(run, trial)) {
                space.points.push(|| (trial.point.clone(), seconds));
            }
        }
        if let Outcome::Crashed { reason, stderr } = &trial.outcome {
            self.crash(run, trial, reason, stderr);
        }
    }

    fn origin(&mut self, trial: &Trial, full: Option<f64>, improves: bool) {
        let name = trial.origin.as_str();
        let room = self.origins.contains_key(name) || self.origins.len() < MOST_ORIGINS;
        if name.is_empty() || !room {
            return;
        }
        let fresh = || Proposals {
            name: shortened(name, 60),
            proposed: 0,
            measured: 0,
            improvements: 0,
            best: None,
            found_best: false,
        };
        let origin = self.origins.entry(name.to_owned()).or_insert_with(fresh);
        origin.proposed += 1;
        origin.measured += u64::from(trial.outcome.timing().is_some());
        origin.improvements += u64::from(improves);
        origin.best = match (origin.best, full) {
            (Some(best), Some(seconds)) => Some(best.min(seconds)),
            (best, seconds) => best.or(seconds),
        };
    }

    fn crash(&mut self, run: &RunSummary, trial: &Trial, reason: &str, stderr: &str) {
        let told = self.crashes.iter().any(|crash| crash.reason == reason);
        if self.crashes.len() < MOST_CRASHES && !told {
            self.crashes.push(Crash {
                trial: TrialId { run: run.info.id.clone(), number: trial.number },
                reason: shortened(reason, 300),
                stderr: shortened(stderr.trim_end(), 1500),
            });
        }
    }

    /// The index of a strategy's group.
    fn group(&mut self, strategy: &str) -> usize {
        let name = if strategy.is_empty() { "(unnamed)" } else { strategy };
        let name = shortened(name, 60);
        let known = self.groups.iter().position(|group| group.name == name);
        known.unwrap_or_else(|| {
            self.groups.push(StrategyRuns { name, ..StrategyRuns::default() });
            self.groups.len() - 1
        })
    }

    /// Makes room for the points of a run's spaces.
    fn space(&mut self, run: &RunSummary, meta: &Meta) {
        let unnamed = [Algorithm::default()];
        let known = &meta.algorithms[..];
        for algorithm in if known.is_empty() { &unnamed[..] } else { known } {
            let name = (run.info.space.clone(), algorithm.name.clone());
            if self.spaces.len() >= MOST_SPACES && !self.spaces.contains_key(&name) {
                return;
            }
            let fresh = || Space { parameters: Vec::new(), points: Downsampler::new(MOST_POINTS) };
            let space = self.spaces.entry(name).or_insert_with(fresh);
            if space.parameters.is_empty() {
                space.parameters.clone_from(&algorithm.parameters);
            }
        }
    }
}
