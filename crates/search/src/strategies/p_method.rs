//! FlexTensor's P-method (sections 5.1 and 6.5): all neighbours of annealed starting points.
//!
//! Unspecified in the paper:
//! - [`GAMMA`], and the number of random points in H before the first choice.
//! - Its steps are synchronous. Here the next starting point is chosen as soon as all neighbours of
//!   the previous one are proposed, from the results so far: nobody waits.
//! - A starting point is not chosen again after its neighbours were proposed.

use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use super::annealed::{Evaluated, GAMMA, WARM_UP};
use super::learned::news;
use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("p-method", "FlexTensor, section 5.1, all directions", |space, settings| {
        Box::new(PMethod::new(space, settings))
    });

/// The P-method.
#[derive(Debug)]
struct PMethod {
    base: Base,
    evaluated: Evaluated,
    /// Neighbours of the starting point that were not proposed yet.
    neighbours: Vec<Point>,
}

impl PMethod {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        Self {
            base: Base::new(space, settings),
            evaluated: Evaluated::default(),
            neighbours: Vec::new(),
        }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        while self.base.visited.len() >= WARM_UP {
            while let Some(point) = self.neighbours.pop() {
                if self.base.claim(&point) {
                    return Some(point);
                }
            }
            let Some(place) = self.evaluated.choose(GAMMA, &mut self.base.rng) else { break };
            let (start, _) = self.evaluated.retire(place);
            self.neighbours = self.base.space.neighbours(&start);
            // A search may end within a neighbourhood: the order must not favour any parameter.
            self.base.rng.shuffle(&mut self.neighbours);
        }
        self.base.random()
    }
}

impl SearchStrategy for PMethod {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            if let Some(value) = news(&mut self.base, observation) {
                self.evaluated.insert(&observation.point, value);
            }
        }
    }
}
