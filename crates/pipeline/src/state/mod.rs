//! [`State`]: a partial schedule of a pipeline.
//!
//! A state is a persistent list of decisions that shares its tail with its parent, so adding a
//! decision costs one allocation.

mod hash;
mod layout;
mod print;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use layout::Load;
pub use layout::{Layout, Member};

/// The tiles of a stage, per level of its loops.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tiling {
    /// The first level of its loops.
    pub first: usize,
    /// For each level, the tile that one iteration computes.
    pub tiles: Vec<Vec<i64>>,
}

impl Tiling {
    /// The tile of a level, if the stage has loops of it.
    #[must_use]
    pub fn tile(&self, level: usize) -> Option<&[i64]> {
        self.tiles.get(level.checked_sub(self.first)?).map(Vec::as_slice)
    }

    /// The trip counts of the loops of a level, for a stage that computes a region.
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

/// The compute location and tiles of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Inlined into its readers.
    Inline,
    /// At the root level. Tiles follow in the second phase; stages left to rules never have any.
    Root(Option<Arc<Tiling>>),
    /// Inside a loop of another stage.
    At {
        /// The other stage.
        consumer: usize,
        /// The level of the loop.
        level: usize,
        /// The tiles.
        tiling: Arc<Tiling>,
    },
}

/// The decisions so far, from outputs to inputs.
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
    /// The [sums of hashes](hash) of all current decisions.
    hashes: hash::Hashes,
    /// The range of decided stages.
    decided: (usize, usize),
    before: Option<Arc<Node>>,
}

impl State {
    /// Adds a decision; it replaces an earlier one about the same stage.
    #[must_use]
    pub fn with(&self, stage: usize, decision: Decision) -> Self {
        let own = hash::of_decision(stage, &decision);
        let before = self.last.clone();
        let mut hashes = before.as_ref().map_or([0; _], |node| node.hashes);
        hashes.iter_mut().zip(own).for_each(|(sum, hash)| *sum = sum.wrapping_add(hash));
        let (least, most) = before.as_ref().map_or((stage, stage), |node| node.decided);
        // Stages are usually decided in order, without an earlier decision to find.
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

    /// The decisions about the first `stages` stages, with hashes.
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

    /// The decision about a stage.
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
    /// Drops long lists iteratively: recursion could overflow the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.before.take();
        }
    }
}
