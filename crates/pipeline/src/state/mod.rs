//! [`State`]: what is decided so far.
//!
//! A state is a list of decisions whose tail it shares with the state that it came from, so that a copy with one more
//! decision costs one allocation.

mod hash;
mod layout;
mod print;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use layout::Load;
pub use layout::{Layout, Member};

/// The tiles of a stage, from the first level of which it has loops to the last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tiling {
    /// The first level of which it has loops.
    pub first: usize,
    /// For each level, the extents of what one iteration computes.
    pub tiles: Vec<Vec<i64>>,
}

impl Tiling {
    /// The tile of a level, if the stage has loops of it.
    #[must_use]
    pub fn tile(&self, level: usize) -> Option<&[i64]> {
        self.tiles.get(level.checked_sub(self.first)?).map(Vec::as_slice)
    }

    /// The number of iterations of the loops of a level, for a stage that computes a region.
    #[must_use]
    pub fn trips(&self, level: usize, region: &[i64]) -> Vec<i64> {
        let Some(tile) = self.tile(level) else { return Vec::new() };
        let around = match level.checked_sub(1).and_then(|above| self.tile(above)) {
            Some(above) => above,
            None => region,
        };
        let trips = |(of, tile): (&i64, &i64)| (of + tile - 1) / tile.max(&1);
        around.iter().zip(tile).map(trips).collect()
    }
}

/// Where a stage is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Wherever it is read.
    Inline,
    /// On its own. Without tiles until the second phase; those of stages that are left to rules never have any.
    Root(Option<Arc<Tiling>>),
    /// Inside a loop of another stage.
    At {
        /// That stage.
        consumer: usize,
        /// The level of the loop.
        level: usize,
        /// The tiles.
        tiling: Arc<Tiling>,
    },
}

/// What is decided so far, from outputs to inputs.
#[derive(Debug, Clone, Default)]
pub struct State {
    last: Option<Arc<Node>>,
}

#[derive(Debug)]
struct Node {
    stage: usize,
    decision: Decision,
    /// The hash of stage and decision.
    hash: u64,
    /// The [sums of hashes](hash) of all decisions that count.
    hashes: hash::Hashes,
    /// The least and the greatest number of a stage that is decided.
    decided: (usize, usize),
    before: Option<Arc<Node>>,
}

impl State {
    /// The state with one more decision; a later decision about a stage replaces an earlier one.
    #[must_use]
    pub fn with(&self, stage: usize, decision: Decision) -> Self {
        let own = hash::of_decision(stage, &decision);
        let before = self.last.clone();
        let mut hashes = before.as_ref().map_or([0; _], |node| node.hashes);
        hashes.iter_mut().zip(own).for_each(|(sum, hash)| *sum = sum.wrapping_add(hash));
        let (least, most) = before.as_ref().map_or((stage, stage), |node| node.decided);
        // Stages are decided in their order, so that there is no earlier decision to look for.
        let replaced = (least..=most).contains(&stage).then(|| self.decision(stage)).flatten();
        if let Some(decision) = replaced {
            let earlier = hash::of_decision(stage, decision);
            hashes.iter_mut().zip(earlier).for_each(|(sum, hash)| *sum = sum.wrapping_sub(hash));
        }
        let (decided, [.., hash]) = ((least.min(stage), most.max(stage)), own);
        Self { last: Some(Arc::new(Node { stage, decision, hash, hashes, decided, before })) }
    }

    /// The state before the last decision.
    pub(crate) fn before(&self) -> Option<Self> {
        Some(Self { last: self.last.as_ref()?.before.clone() })
    }

    /// What is decided about each of so many stages, with a hash.
    pub(crate) fn decisions(&self, stages: usize) -> Vec<Option<(&Decision, u64)>> {
        let mut found = vec![None; stages];
        let mut at = self.last.as_deref();
        while let Some(node) = at {
            if let Some(place) = found.get_mut(node.stage)
                && place.is_none()
            {
                *place = Some((&node.decision, node.hash));
            }
            at = node.before.as_deref();
        }
        found
    }

    /// What is decided about a stage.
    #[must_use]
    pub fn decision(&self, stage: usize) -> Option<&Decision> {
        let mut at = self.last.as_deref();
        while let Some(node) = at {
            if node.stage == stage {
                return Some(&node.decision);
            }
            at = node.before.as_deref();
        }
        None
    }
}

impl Drop for Node {
    /// Long lists are taken apart one by one: recursion would take a frame of the stack for each.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.before.take();
        }
    }
}
