//! OpEvo: topology-aware evolution, section 4 and algorithm 1 of Gao et al. 2021.
//!
//! Each parameter of a child comes from one of the lambda best points with a probability
//! proportional to its fitness (equation 2), and is then mutated by a q-random walk over the
//! parameter's graph (section 4.3). Appendix B: lambda = rho = 8, q = 0.5.
//!
//! Beyond the paper:
//! - "We will mutate the child again until it is not already sampled": it continues from its
//!   position. Points that the space's rules reject count as sampled, with fitness zero. After
//!   sixteen failed walks another child is made, and in the end a random point is taken.
//! - A generation is made from the points known when it is requested; nobody waits for pending
//!   points. Until a point of positive fitness is known, points are random.

use std::collections::VecDeque;
use std::sync::Arc;

use tensorwright_space::{Parameter, Point, Rng, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("opevo", "Gao et al. 2021, section 4", |space, settings| {
        Box::new(OpEvo::new(space, settings))
    });

/// The number of parents, and of random points at the start.
const LAMBDA: usize = 8;

/// The number of children per generation.
const RHO: usize = 8;

/// The mutation rate: the probability of another step of the walk.
const Q: f64 = 0.5;

/// The number of walks of a child before another is made.
const MOST_WALKS: usize = 16;

/// The number of children before a random point is taken.
const MOST_CHILDREN: usize = 16;

/// Topology-aware evolution.
#[derive(Debug)]
struct OpEvo {
    base: Base,
    /// The lambda best points, best first.
    parents: Vec<(Point, f64)>,
    /// Children that were not proposed yet.
    children: VecDeque<Point>,
}

impl OpEvo {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        Self {
            base: Base::new(space, settings),
            parents: Vec::with_capacity(LAMBDA + 1),
            children: VecDeque::new(),
        }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        if self.base.visited.len() < LAMBDA || self.parents.is_empty() {
            return self.base.random();
        }
        if self.children.is_empty() {
            self.breed();
        }
        // Other observations may have arrived in the meantime.
        while let Some(child) = self.children.pop_front() {
            if self.base.claim(&child) {
                return Some(child);
            }
        }
        self.base.random()
    }

    fn breed(&mut self) {
        let chances: Vec<f64> = self.parents.iter().map(|(_, fitness)| *fitness).collect();
        let parents: Vec<Point> = self.parents.iter().map(|(point, _)| point.clone()).collect();
        for _ in 0..RHO {
            let child = self.child(&parents, &chances);
            self.children.extend(child);
        }
    }

    /// A new legal child.
    fn child(&mut self, parents: &[Point], chances: &[f64]) -> Option<Point> {
        let Self { base, children, .. } = self;
        for _ in 0..MOST_CHILDREN {
            let mut child = recombine(&base.space, parents, chances, &mut base.rng);
            for _ in 0..MOST_WALKS {
                child = mutate(&base.space, &child, &mut base.rng);
                let known = base.visited.contains(&child) || children.contains(&child);
                if !known && base.space.is_legal(&child) {
                    return Some(child);
                }
            }
        }
        None
    }
}

/// Equation 2: each parameter comes from a parent, with a probability proportional to its fitness.
fn recombine(space: &SearchSpace, parents: &[Point], chances: &[f64], rng: &mut Rng) -> Point {
    let ranks = (0..space.parameters().len()).map(|p| parents[rng.weighted(chances)].rank(p));
    Point::new(ranks.collect::<Box<[u32]>>())
}

/// Section 4.3: each parameter takes a random walk.
fn mutate(space: &SearchSpace, point: &Point, rng: &mut Rng) -> Point {
    let parameters = space.parameters().iter().zip(point.ranks());
    let ranks = parameters.map(|(parameter, rank)| q_random_walk(parameter, *rank, Q, rng));
    Point::new(ranks.collect::<Box<[u32]>>())
}

/// The q-random walk of section 4.3: moves to a uniformly random neighbour (equation 3), and
/// continues from there; before every step it stops with probability 1 - q.
///
/// The distribution of the final value is the start's column of (1-q)(I-Q)^-1 (appendix A). `q` is
/// at most 0.999, since 1 would never stop.
#[must_use]
pub fn q_random_walk(parameter: &Parameter, rank: u32, q: f64, rng: &mut Rng) -> u32 {
    let q = q.min(0.999);
    let mut rank = rank;
    while rng.chance(q) {
        match rng.choose(&parameter.neighbours(rank)) {
            Some(next) => rank = *next,
            None => break,
        }
    }
    rank
}

impl SearchStrategy for OpEvo {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            let Some(fitness) = self.base.observe(observation) else { continue };
            if fitness > 0.0 {
                let place = self.parents.partition_point(|(_, other)| *other >= fitness);
                self.parents.insert(place, (observation.point.clone(), fitness));
                self.parents.truncate(LAMBDA);
            }
        }
    }
}
