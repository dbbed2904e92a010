//! G-BFS: greedy best-first search, section 3.3 and algorithm 1 of Zhang et al. 2019.
//!
//! A priority queue contains the measured states. The fastest is removed, rho of its neighbours are
//! sampled (section 4: rho = 5), and those that are legitimate and new are measured and enqueued.
//! The search starts at the untiled state (section 4), unless it has starting points.
//!
//! Beyond the paper:
//! - Its actions double one factor and halve another (equation 6); here neighbours are those of the
//!   space: a prime factor moves, two items of an order swap, a number changes by one step, or
//!   another choice is taken. For powers of two the first is the paper's action.
//! - The paper ends when the queue is empty. Here a random legal point follows. The same happens
//!   if more points are requested while all expandable ones are pending: nobody waits.

use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use crate::base::{Base, propose, untiled};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("g-bfs", "Zhang et al. 2019, section 3.3", |space, settings| {
        Box::new(GBfs::new(space, settings))
    });

/// The number of sampled neighbours per state.
const RHO: usize = 5;

/// Greedy best-first search.
#[derive(Debug)]
struct GBfs {
    base: Base,
    queue: BinaryHeap<State>,
    /// Sampled neighbours that were not proposed yet.
    drawn: VecDeque<Point>,
}

/// A state in the queue: the fittest first, ties broken by the point.
#[derive(Debug)]
struct State {
    fitness: f64,
    point: Point,
}

impl GBfs {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        Self { base: Base::new(space, settings), queue: BinaryHeap::new(), drawn: VecDeque::new() }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        if self.base.visited.is_empty() {
            self.drawn.push_back(untiled(&self.base.space));
        }
        loop {
            while let Some(point) = self.drawn.pop_front() {
                if self.base.claim(&point) {
                    return Some(point);
                }
            }
            match self.queue.pop() {
                Some(state) => self.expand(&state.point),
                None => return self.base.random(),
            }
        }
    }

    fn expand(&mut self, state: &Point) {
        let mut neighbours = self.base.space.neighbours(state);
        self.base.rng.shuffle(&mut neighbours);
        self.drawn.extend(neighbours.into_iter().take(RHO));
    }
}

impl SearchStrategy for GBfs {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            let Some(fitness) = self.base.observe(observation) else { continue };
            if fitness > 0.0 {
                self.queue.push(State { fitness, point: observation.point.clone() });
            }
        }
    }
}

impl Ord for State {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.fitness.total_cmp(&other.fitness).then_with(|| self.point.cmp(&other.point))
    }
}

impl PartialOrd for State {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for State {}
