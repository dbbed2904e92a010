//! Descent: local search by single moves, then pairs of moves.
//!
//! Not from a paper: the plain local search that the others must beat, and the final phase of the
//! portfolio. It tries all moves from the best point, starting with those that paid off elsewhere,
//! and continues from a better point as soon as one is known. In a local optimum it tries pairs of
//! moves, since tile sizes trade off against each other, and then random points.

use std::collections::HashMap;
use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("descent", "best neighbour first, then pairs of moves", |space, settings| {
        Box::new(Descent::new(space, settings))
    });

/// The number of random points before the first descent.
const RANDOM_FIRST: usize = 8;

/// The number of pairs tried in a local optimum before a random point.
const MOST_PAIRS: usize = 200;

/// Descent.
#[derive(Debug)]
struct Descent {
    base: Base,
    /// The direction that led to a point, and the fitness before the step.
    steps: HashMap<Point, (usize, f64)>,
    /// The gain of each direction.
    gains: Vec<Gain>,
}

/// The mean log-fitness gain of a direction, initialized with one step without gain.
#[derive(Debug, Clone, Copy)]
struct Gain {
    sum: f64,
    steps: f64,
}

impl Descent {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        let gains = vec![Gain { sum: 0.0, steps: 1.0 }; space.directions()];
        Self { base: Base::new(space, settings), steps: HashMap::new(), gains }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        let first = self.base.visited.len() < RANDOM_FIRST;
        match self.base.visited.best().cloned() {
            Some((best, fitness)) if !first => {
                let near = self.single(&best, fitness).or_else(|| self.pair(&best));
                near.or_else(|| self.base.random())
            }
            _ => self.base.random(),
        }
    }

    /// The most promising move from a point to a new one.
    fn single(&mut self, from: &Point, fitness: f64) -> Option<Point> {
        let mut directions: Vec<usize> = (0..self.gains.len()).collect();
        self.base.rng.shuffle(&mut directions);
        let mean = |direction: &usize| {
            let gain = self.gains[*direction];
            gain.sum / gain.steps
        };
        directions.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
        for direction in directions {
            let Some(point) = self.base.space.step(from, direction) else { continue };
            if self.base.claim(&point) {
                self.steps.insert(point.clone(), (direction, fitness));
                return Some(point);
            }
        }
        None
    }

    /// Two random moves from a point to a new one.
    fn pair(&mut self, from: &Point) -> Option<Point> {
        let directions = self.base.space.directions();
        for _ in 0..MOST_PAIRS {
            let mut step = |point: &Point| {
                let direction = self.base.rng.index(directions);
                self.base.space.step(point, direction)
            };
            let Some(point) = step(from).and_then(|middle| step(&middle)) else { continue };
            if self.base.claim(&point) {
                return Some(point);
            }
        }
        None
    }
}

impl SearchStrategy for Descent {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            let Some(fitness) = self.base.observe(observation) else { continue };
            if let Some((direction, before)) = self.steps.remove(&observation.point) {
                // A failure counts like a tenfold slowdown.
                let gain = (fitness / before).ln().clamp(-2.3, 2.3);
                self.gains[direction].sum += gain;
                self.gains[direction].steps += 1.0;
            }
        }
    }
}
