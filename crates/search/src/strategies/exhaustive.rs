//! Exhaustive search: every legal point once, in numeric order.
//!
//! It stores its position and the observations, never the space, so it can start on 10^20 points.

use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("exhaustive", "every point in order", |space, settings| {
        Box::new(Exhaustive::new(space, settings))
    });

/// The search ends after this many consecutive illegal points: enumeration would find no more.
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
