//! Boosted-tree surrogate with simulated annealing, after AutoTVM.
//!
//! The loop of Chen et al., "Learning to Optimize Tensor Programs" (2018): learn to rank from all
//! measurements, anneal over the model, measure a batch of the most promising points, repeat.
//!
//! From AutoTVM, its paper or its program: batches of 64, the first one random; the pairwise
//! ranking objective; trees of depth 3 with a shrinkage of 0.3; 128 parallel chains that continue
//! from batch to batch; one point in twenty is random (epsilon-greedy); batches are selected for
//! diversity, too.
//!
//! Differences:
//! - Features are those of the space, not of lowered loops: they cost microseconds.
//! - Annealing takes [`SurrogateOptions::evaluations`] per point of the batch, a quarter of
//!   AutoTVM's.
//! - The next batch is planned when the last one is proposed, from the results so far;
//!   nobody waits.

mod annealing;
mod diversity;

use std::collections::VecDeque;
use std::sync::Arc;

use tensorwright_learn::{Boosted, Boosting, Objective};
use tensorwright_space::{Point, SearchSpace};

use super::learned::news;
use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};
use annealing::Annealing;

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("surrogate", "boosted trees, after AutoTVM", |space, settings| {
        Box::new(Surrogate::new(space, settings, SurrogateOptions::default()))
    });

/// Options of the surrogate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SurrogateOptions {
    /// The batch size. The model is retrained after each batch, so smaller batches learn sooner and
    /// cost more.
    pub(crate) batch: usize,
    /// The fraction of random points.
    pub(crate) epsilon: f64,
    /// The number of model evaluations per proposed point.
    pub(crate) evaluations: usize,
}

impl Default for SurrogateOptions {
    fn default() -> Self {
        Self { batch: 64, epsilon: 0.05, evaluations: 256 }
    }
}

/// The number of candidates per batch, in units of the batch (AutoTVM's lambda).
const CANDIDATES: usize = 2;

/// The surrogate.
#[derive(Debug)]
pub(crate) struct Surrogate {
    base: Base,
    options: SurrogateOptions,
    /// The training data: features of points (row-major), and their performance.
    rows: Vec<f32>,
    values: Vec<f64>,
    annealing: Annealing,
    /// Points of the batch that were not proposed yet.
    planned: VecDeque<Point>,
    /// The number of training rows when they were planned.
    learnt: usize,
}

impl Surrogate {
    /// Starts on a space.
    pub(crate) fn new(
        space: Arc<SearchSpace>,
        settings: &StrategySettings,
        options: SurrogateOptions,
    ) -> Self {
        Self {
            base: Base::new(space, settings),
            options,
            rows: Vec::new(),
            values: Vec::new(),
            annealing: Annealing::default(),
            planned: VecDeque::new(),
            learnt: 0,
        }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        if self.base.rng.chance(self.options.epsilon) {
            return self.base.random();
        }
        // Other strategies may add results: after a batch of them, the plan is outdated.
        if self.values.len() >= self.learnt + self.options.batch {
            self.planned.clear();
        }
        let planned = self.next_planned();
        if planned.is_some() || self.values.len() < self.options.batch {
            return planned.or_else(|| self.base.random());
        }
        self.plan();
        self.next_planned().or_else(|| self.base.random())
    }

    fn next_planned(&mut self) -> Option<Point> {
        while let Some(point) = self.planned.pop_front() {
            if self.base.claim(&point) {
                return Some(point);
            }
        }
        None
    }

    /// Trains the model, and plans the next batch.
    fn plan(&mut self) {
        let batch = self.options.batch.max(1);
        self.learnt = self.values.len();
        let model = self.train();
        let evaluations = self.options.evaluations * batch;
        let Base { space, rng, visited, .. } = &mut self.base;
        let seen = self.annealing.search(space, rng, evaluations, |rows| model.predict(rows));
        let new = seen.into_iter().filter(|(point, _)| !visited.contains(point));
        let candidates = new.take(CANDIDATES * batch).collect();
        self.planned.extend(diversity::choose(candidates, batch));
    }

    /// Trains a model on all data, relative to the best performance.
    fn train(&mut self) -> Boosted {
        let best = self.values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let targets: Vec<f32> = self.values.iter().map(|value| (value / best) as f32).collect();
        let features = self.rows.len() / self.values.len().max(1);
        Boosted::fit(&self.rows, features, &targets, &boosting(), self.base.rng.next_u64())
    }
}

/// The parameters of AutoTVM's trees. AutoTVM adds trees until a validation set stops improving;
/// with hundreds of rows that is at about 60.
fn boosting() -> Boosting {
    Boosting {
        objective: Objective::Pairwise { opponents: 8 },
        trees: 60,
        depth: 3,
        rate: 0.3,
        l2: 1.0,
        min_gain: 1e-4,
        min_weight: 1.0,
        rows: 1.0,
        features: 1.0,
        ..Boosting::default()
    }
}

impl SearchStrategy for Surrogate {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            if let Some(value) = news(&mut self.base, observation) {
                self.rows.extend(self.base.space.features(&observation.point));
                self.values.push(value);
            }
        }
    }
}
