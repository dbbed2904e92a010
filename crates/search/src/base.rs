//! [`Base`]: the common state of strategies.

use std::sync::Arc;

use tensorwright_space::{Domain, Parameter, Point, Rng, SearchSpace};

use crate::{Observation, Proposal, StrategySettings, Visited};

/// The common state of strategies: space, random numbers, known points and starting points. Every
/// proposed point passes through [`Base::claim`], so that none is illegal or proposed twice.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) space: Arc<SearchSpace>,
    pub(crate) rng: Rng,
    pub(crate) visited: Visited,
    /// The remaining points of [`StrategySettings::start`], the next one last.
    start: Vec<Point>,
}

impl Base {
    /// The initial state of a strategy.
    pub(crate) fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        let start = settings.start.iter().rev().cloned().collect();
        Self { space, rng: Rng::new(settings.seed), visited: Visited::default(), start }
    }

    /// Claims a point if it is legal and new.
    pub(crate) fn claim(&mut self, point: &Point) -> bool {
        let new = !self.visited.contains(point) && self.space.is_legal(point);
        new && self.visited.propose(point)
    }

    /// Records the outcome of a point and returns its fitness; `None` if it is not in the space.
    pub(crate) fn observe(&mut self, observation: &Observation) -> Option<f64> {
        self.space.contains(&observation.point).then(|| self.visited.observe(observation))
    }

    /// The next starting point from the settings.
    pub(crate) fn start(&mut self) -> Option<Point> {
        while let Some(point) = self.start.pop() {
            if self.claim(&point) {
                return Some(point);
            }
        }
        None
    }

    /// A new legal point, uniformly distributed.
    pub(crate) fn random(&mut self) -> Option<Point> {
        let point = self.visited.sample_new(&self.space, &mut self.rng)?;
        self.visited.propose(&point);
        Some(point)
    }
}

/// Proposes at most `at_most` points from a function; exhausted if it returns none.
pub(crate) fn propose(at_most: usize, next: impl FnMut() -> Option<Point>) -> Proposal {
    if at_most == 0 {
        return Proposal::Wait;
    }
    let points: Vec<Point> = std::iter::from_fn(next).take(at_most).collect();
    if points.is_empty() { Proposal::Exhausted } else { Proposal::Points(points) }
}

/// The untiled point, where G-BFS and N-A2C start: every loop unsplit, every other parameter at its
/// first value.
pub(crate) fn untiled(space: &SearchSpace) -> Point {
    let rank = |parameter: &Parameter| match parameter.domain() {
        Domain::Factorization(splits) => splits.plain(),
        Domain::Permutation(_) | Domain::Discrete(_) | Domain::Categorical(_) => 0,
    };
    Point::new(space.parameters().iter().map(rank).collect::<Box<[u32]>>())
}
