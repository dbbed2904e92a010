//! Exhaustive search: every legal point once, in the order of their numbers.
//!
//! It keeps its place and what it was told, never the space: a space of 10^20 points can be begun.

use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry's line.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("exhaustive", "every point in order", |space, settings| {
        Box::new(Exhaustive::new(space, settings))
    });

/// So many illegal points in a row are the end: what lies behind is not found by walking.
const MOST_SKIPPED: usize = 1 << 20;

/// Exhaustive search.
#[derive(Debug)]
struct Exhaustive {
    base: Base,
    next: Option<Point>,
}

impl Exhaustive {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        let next = Some(space.first());
        Self { base: Base::new(space, settings), next }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        for _ in 0..MOST_SKIPPED {
            let point = self.next.take()?;
            self.next = self.base.space.successor(&point);
            if self.base.claim(&point) {
                return Some(point);
            }
        }
        self.next = None;
        None
    }
}

impl SearchStrategy for Exhaustive {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            self.base.observe(observation);
        }
    }
}
