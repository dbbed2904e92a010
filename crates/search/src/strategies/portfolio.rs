//! A portfolio: a multi-armed bandit over the other strategies.
//!
//! It gives each trial to one of them, and all of them observe the outcome.
//!
//! As in OpenTuner (Ansel et al. 2014, section 4), the credit of a strategy is the area under the
//! curve of its successes in a sliding window. A success is a new best point, and later ones weigh
//! more. An upper confidence bound ensures exploration. A strategy that pays off on this program
//! soon gets most of the trials, and learns from the trials of the others.
//!
//! Beyond OpenTuner, strategies start with a credit: sixty trials are too few to rediscover which
//! of them learn from few trials.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings, registry};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("portfolio", "a bandit over all others", |space, settings| {
        Box::new(Portfolio::new(space, settings))
    });

/// The strategies with their initial credit, as a success rate over [`PRIOR_TRIALS`] trials.
/// Exhaustive search is excluded: it would fill the space from one corner.
const ARMS: &[(&str, f64)] = &[
    ("gaussian", 4.0),
    ("descent", 1.5),
    ("opevo", 1.0),
    ("surrogate", 1.0),
    ("g-bfs", 0.5),
    ("q-method", 0.5),
    ("p-method", 0.5),
    ("n-a2c", 0.5),
    ("genetic", 0.25),
    ("random", 0.25),
];

/// The weight of the initial credit in trials.
const PRIOR_TRIALS: f64 = 10.0;

/// The length of the credit window in trials.
const WINDOW: usize = 100;

/// The weight of the confidence bound (OpenTuner: C = 0.05).
const EXPLORATION: f64 = 0.05;

/// How often a strategy is asked again if its proposal is already pending.
const MOST_ASKED: usize = 4;

/// A bandit over the other strategies.
struct Portfolio {
    base: Base,
    arms: Vec<Member>,
    /// The arm that proposed each pending point.
    proposed: HashMap<Point, usize>,
    /// The latest trials: the arm, and whether it succeeded.
    window: VecDeque<(usize, bool)>,
}

/// A strategy of the portfolio.
struct Member {
    name: &'static str,
    strategy: Box<dyn SearchStrategy>,
    prior: f64,
    /// The number of pending trials.
    out: usize,
}

impl Portfolio {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        let mut base = Base::new(space.clone(), settings);
        let mut arm = |(name, prior): &(&'static str, f64)| {
            // The portfolio itself proposes the starting points.
            let settings = StrategySettings { seed: base.rng.next_u64(), start: Vec::new() };
            let strategy = registry::find(name)?.start(space.clone(), &settings);
            Some(Member { name, strategy, prior: *prior, out: 0 })
        };
        let arms = ARMS.iter().filter_map(&mut arm).collect();
        Self { base, arms, proposed: HashMap::new(), window: VecDeque::new() }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        for arm in self.ranked() {
            if let Some(point) = self.ask(arm) {
                self.arms[arm].out += 1;
                self.proposed.insert(point.clone(), arm);
                return Some(point);
            }
        }
        self.base.random()
    }

    /// A new point of an arm.
    fn ask(&mut self, arm: usize) -> Option<Point> {
        for _ in 0..MOST_ASKED {
            let Proposal::Points(points) = self.arms[arm].strategy.propose(1) else { return None };
            let new = points.into_iter().find(|point| self.base.claim(point));
            if new.is_some() {
                return new;
            }
        }
        None
    }

    /// The arms by credit, highest first; ties keep their order.
    fn ranked(&self) -> Vec<usize> {
        let credits: Vec<f64> = (0..self.arms.len()).map(|arm| self.credit(arm)).collect();
        let mut ranked: Vec<usize> = (0..self.arms.len()).collect();
        ranked.sort_by(|a, b| credits[*b].total_cmp(&credits[*a]));
        ranked
    }

    /// The area under the curve of successes, and the upper confidence bound.
    fn credit(&self, arm: usize) -> f64 {
        let trials = || self.window.iter().filter(|(other, _)| *other == arm);
        let count = trials().count() as f64;
        let successes = trials().zip(1..).filter(|((_, success), _)| *success);
        // The k-th trial of n weighs 2k/(n+1), so n successes have area n.
        let area: f64 = successes.map(|(_, k)| 2.0 * f64::from(k) / (count + 1.0)).sum();
        let Member { prior, out, .. } = self.arms[arm];
        let uses = PRIOR_TRIALS + count + out as f64;
        let all = self.arms.len() as f64 * PRIOR_TRIALS + self.window.len() as f64;
        (prior + area) / uses + EXPLORATION * (2.0 * all.ln() / uses).sqrt()
    }
}

impl SearchStrategy for Portfolio {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn proposer(&self, point: &Point) -> Option<&'static str> {
        self.proposed.get(point).map(|arm| self.arms[*arm].name)
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            let best = self.base.visited.best().map_or(0.0, |(_, fitness)| *fitness);
            let Some(fitness) = self.base.observe(observation) else { continue };
            let Some(arm) = self.proposed.remove(&observation.point) else { continue };
            self.arms[arm].out = self.arms[arm].out.saturating_sub(1);
            self.window.push_back((arm, fitness > best));
            if self.window.len() > WINDOW {
                self.window.pop_front();
            }
        }
        for arm in &mut self.arms {
            arm.strategy.observe(observations);
        }
    }
}
