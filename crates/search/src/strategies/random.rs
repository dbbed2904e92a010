//! Random search: uniform sampling of legal points without repetition.

use std::sync::Arc;

use tensorwright_space::SearchSpace;

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("random", "uniform sampling without repetition", |space, settings| {
        Box::new(Random::new(space, settings))
    });

/// Random search.
#[derive(Debug)]
struct Random {
    base: Base,
}

impl Random {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        Self { base: Base::new(space, settings) }
    }
}

impl SearchStrategy for Random {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.base.start().or_else(|| self.base.random()))
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            self.base.observe(observation);
        }
    }
}
