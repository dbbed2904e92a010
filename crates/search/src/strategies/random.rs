//! Random search: every legal point equally likely, none twice.

use std::sync::Arc;

use tensorwright_space::{Rng, SearchSpace};

use crate::{Observation, Proposal, SearchStrategy, Settings, Strategy, Visited};

/// The registry's line.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("random", "uniform sampling without repetition", |space, settings| {
        Box::new(Random::new(space, settings))
    });

/// Random search.
#[derive(Debug)]
pub struct Random {
    space: Arc<SearchSpace>,
    rng: Rng,
    visited: Visited,
    start: Vec<tensorwright_space::Point>,
}

impl Random {
    /// Starts on a space.
    #[must_use]
    pub fn new(space: Arc<SearchSpace>, settings: &Settings) -> Self {
        let mut start = settings.start.clone();
        start.retain(|point| space.is_legal(point));
        start.reverse();
        Self { space, rng: Rng::new(settings.seed), visited: Visited::default(), start }
    }
}

impl SearchStrategy for Random {
    fn propose(&mut self, at_most: usize) -> Proposal {
        let mut points = Vec::new();
        while points.len() < at_most {
            let next = self.start.pop().filter(|point| !self.visited.contains(point));
            let next = next.or_else(|| self.visited.sample_new(&self.space, &mut self.rng));
            let Some(point) = next else { break };
            self.visited.propose(&point);
            points.push(point);
        }
        if points.is_empty() { Proposal::Exhausted } else { Proposal::Points(points) }
    }

    fn observe(&mut self, observations: &[Observation]) {
        observations.iter().for_each(|observation| {
            self.visited.observe(observation);
        });
    }
}
