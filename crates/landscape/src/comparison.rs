//! [`Comparison`]: compares strategies on a landscape.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use tensorwright_search::Strategy;

use crate::{Landscape, Quartiles, Replay, Trace, replay};

/// The shares of the optimum to reach.
const LEVELS: [f64; 3] = [0.90, 0.95, 0.99];

/// The trial counts at which the best is reported.
const MOMENTS: [usize; 3] = [50, 200, 500];

/// The setup of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// The number of runs of a strategy; their seeds are 0, 1, 2 and so on.
    pub seeds: u64,
    /// The trials of a run.
    pub trials: usize,
    /// The number of points requested at a time.
    pub batch: usize,
    /// Whether runs start at the points of [`Provenance::start`](crate::Provenance::start).
    pub start: bool,
    /// The number of concurrent runs.
    pub threads: usize,
}

impl Default for Experiment {
    fn default() -> Self {
        Self { seeds: 20, trials: 500, batch: 1, start: false, threads: 1 }
    }
}

/// The results of strategies on a landscape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The points of the landscape.
    pub points: usize,
    /// The seconds of the fastest.
    pub optimum: Option<f64>,
    /// The runs of each strategy.
    pub seeds: u64,
    /// The trials of each run.
    pub trials: usize,
    /// One row per strategy.
    pub rows: Vec<Row>,
}

/// The results of a strategy over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub strategy: &'static str,
    /// Trials to reach each share of the optimum.
    pub reach: Vec<Reach>,
    /// The share of the optimum after each trial count.
    pub after: Vec<After>,
    /// The strategy's own mean time per trial.
    pub own_seconds_per_trial: f64,
}

/// Trials to reach a share of the optimum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reach {
    /// The share of the optimum's speed.
    pub level: f64,
    /// The number of trials needed.
    pub trials: Quartiles,
    /// The number of runs that reached it.
    pub reached: usize,
}

/// The share of the optimum after some trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct After {
    /// The number of trials.
    pub trials: usize,
    /// The share of the optimum's speed; 0 if nothing was measured.
    pub share: Quartiles,
}

impl Comparison {
    /// Runs all strategies with all seeds. `clock` returns the seconds of the calling thread;
    /// `progress` receives the number of finished runs and of all runs.
    #[must_use]
    pub fn run(
        landscape: &Landscape,
        strategies: &[&Strategy],
        experiment: &Experiment,
        clock: &(dyn Fn() -> f64 + Sync),
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Self {
        let optimum = landscape.optimum().map(|(_, seconds)| seconds);
        let traces = traces(landscape, strategies, experiment, clock, progress);
        let runs = usize::try_from(experiment.seeds).unwrap_or(usize::MAX).max(1);
        let rows = strategies.iter().zip(traces.chunks(runs));
        let rows =
            rows.map(|(strategy, traces)| row(strategy, traces, optimum, experiment)).collect();
        let points = landscape.points().len();
        Self { points, optimum, seeds: experiment.seeds, trials: experiment.trials, rows }
    }
}

/// The runs of all strategies with all seeds, in this order whichever thread ran them.
fn traces(
    landscape: &Landscape,
    strategies: &[&Strategy],
    experiment: &Experiment,
    clock: &(dyn Fn() -> f64 + Sync),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Trace> {
    let tasks: Vec<(&Strategy, u64)> =
        strategies.iter().flat_map(|s| (0..experiment.seeds).map(move |seed| (*s, seed))).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let traces = Mutex::new(Vec::with_capacity(tasks.len()));
    let work = || {
        while let Some((strategy, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Experiment { trials, batch, start, .. } = *experiment;
            let how = Replay { seed: *seed, trials, batch, start };
            let place = (strategy.name, *seed);
            let trace = replay(landscape, strategy, &how, &|| clock());
            if let Ok(mut traces) = traces.lock() {
                traces.push((place, trace));
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
        }
    };
    std::thread::scope(|scope| {
        (1..experiment.threads.max(1)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut traces = traces.into_inner().unwrap_or_default();
    let order = |name: &str| strategies.iter().position(|strategy| strategy.name == name);
    traces.sort_by_key(|((name, seed), _)| (order(name), *seed));
    traces.into_iter().map(|(_, trace)| trace).collect()
}

fn row(
    strategy: &Strategy,
    traces: &[Trace],
    optimum: Option<f64>,
    experiment: &Experiment,
) -> Row {
    let reach = |level: f64| {
        let limit = optimum.map_or(0.0, |seconds| seconds / level);
        let found: Vec<Option<usize>> = traces.iter().map(|t| t.trials_to(limit)).collect();
        let trials = found.iter().map(|trials| trials.map_or(f64::INFINITY, |n| n as f64));
        Reach {
            level,
            trials: Quartiles::new(trials.collect()),
            reached: found.iter().flatten().count(),
        }
    };
    let share = |trace: &Trace, trials| match (optimum, trace.best_after(trials)) {
        (Some(optimum), Some(best)) => optimum / best,
        _ => 0.0,
    };
    let after = |trials: usize| {
        let shares = traces.iter().map(|trace| share(trace, trials)).collect();
        After { trials, share: Quartiles::new(shares) }
    };
    let tried: usize = traces.iter().map(|trace| trace.trials.len()).sum();
    let own: f64 = traces.iter().map(|trace| trace.own_seconds).sum();
    Row {
        strategy: strategy.name,
        reach: LEVELS.map(reach).into(),
        after: MOMENTS.into_iter().filter(|n| *n <= experiment.trials).map(after).collect(),
        own_seconds_per_trial: own / tried.max(1) as f64,
    }
}
