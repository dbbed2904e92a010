//! [`replay`]: runs a search on a landscape.

use tensorwright_search::{Observation, Proposal, Strategy, StrategySettings};
use tensorwright_space::Point;

use crate::Landscape;

/// The setup of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// The seed of all random choices.
    pub seed: u64,
    /// The most points to try.
    pub trials: usize,
    /// The number of points requested at a time.
    pub batch: usize,
    /// Whether the search starts at the points of [`Provenance::start`](crate::Provenance::start).
    pub start: bool,
}

impl Default for Replay {
    fn default() -> Self {
        Self { seed: 0, trials: 500, batch: 1, start: false }
    }
}

/// The trials of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The strategy's name.
    pub strategy: &'static str,
    /// The tried points in order.
    pub trials: Vec<Trial>,
    /// The strategy's own seconds.
    pub own_seconds: f64,
}

/// A tried point.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The point.
    pub point: Point,
    /// Its seconds if it was measured.
    pub seconds: Option<f64>,
}

impl Trace {
    /// The best seconds of the first `trials` trials.
    #[must_use]
    pub fn best_after(&self, trials: usize) -> Option<f64> {
        let measured = self.trials.iter().take(trials).filter_map(|trial| trial.seconds);
        measured.min_by(f64::total_cmp)
    }

    /// The number of trials until the best takes at most `seconds`.
    #[must_use]
    pub fn trials_to(&self, seconds: f64) -> Option<usize> {
        let good = |trial: &Trial| trial.seconds.is_some_and(|s| s <= seconds);
        self.trials.iter().position(good).map(|place| place + 1)
    }
}

/// Runs a strategy on a landscape; deterministic for a seed. `clock` returns seconds and is read
/// around every call of the strategy.
pub fn replay(
    landscape: &Landscape,
    strategy: &Strategy,
    how: &Replay,
    clock: &dyn Fn() -> f64,
) -> Trace {
    let start = if how.start { landscape.origin().start.clone() } else { Vec::new() };
    let settings = StrategySettings { seed: how.seed, start };
    let begin = clock();
    let mut search = strategy.start(landscape.space(), &settings);
    let mut own_seconds = clock() - begin;
    let mut trials: Vec<Trial> = Vec::new();
    while trials.len() < how.trials {
        let at_most = how.batch.max(1).min(how.trials - trials.len());
        let begin = clock();
        let proposal = search.propose(at_most);
        own_seconds += clock() - begin;
        // All outcomes have been reported, so there is nothing to wait for.
        let Proposal::Points(points) = proposal else { break };
        let observations: Vec<Observation> = points
            .into_iter()
            .filter_map(|point| Some((landscape.outcome(&point)?, point)))
            .map(|(outcome, point)| Observation { point, outcome })
            .collect();
        if observations.is_empty() {
            break;
        }
        let begin = clock();
        search.observe(&observations);
        own_seconds += clock() - begin;
        trials.extend(
            observations
                .into_iter()
                .map(|Observation { point, outcome }| Trial { point, seconds: outcome.cost() }),
        );
    }
    Trace { strategy: strategy.name, trials, own_seconds }
}
