//! Options of a stage: compute locations, tiles, pruning (section 4).

mod locations;
mod prune;
#[cfg(test)]
mod tests;
mod tilings;

use std::sync::Arc;

use crate::dag::Dag;
use crate::levels::Levels;
use crate::state::{Decision, Layout, State};

pub(crate) use prune::is_pruned;

/// The search space of an enumeration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space<'a> {
    pub(crate) dag: &'a Dag,
    pub(crate) levels: &'a Levels,
    /// The maximum recomputation factor of a stage (4.6: excessive recompute).
    pub(crate) recompute: f64,
}

impl Space<'_> {
    /// The first phase: the compute location of a stage whose consumers are decided. A stage inside
    /// another one gets its tiles now, since they affect the other stages there. `fuses` enables
    /// these locations.
    pub(crate) fn locations(&self, state: &State, stage: usize, fuses: bool) -> Vec<State> {
        let layout = Layout::new(self.dag, state);
        if self.dag.stages[stage].is_movable && locations::must_inline(self.dag, &layout, stage) {
            return vec![state.with(stage, Decision::Inline)];
        }
        let mut found = vec![state.with(stage, Decision::Root(None))];
        if locations::may_inline(self.dag, &layout, stage, self.recompute) {
            found.push(state.with(stage, Decision::Inline));
        }
        if fuses && self.dag.stages[stage].is_movable {
            for scope in locations::scopes(self.dag, self.levels, &layout, stage) {
                found.extend(self.inside(state, stage, scope));
            }
        }
        found
    }

    /// A stage inside a loop of another, with all tilings.
    fn inside(&self, state: &State, stage: usize, (consumer, level): (usize, usize)) -> Vec<State> {
        // The region does not depend on the tiles.
        let place = |tiling| Decision::At { consumer, level, tiling };
        let plain = Arc::new(crate::state::Tiling { first: level + 1, tiles: Vec::new() });
        let placed = state.with(stage, place(plain));
        let layout = Layout::new(self.dag, &placed);
        let Some(region) = layout.region(stage) else { return Vec::new() };
        if is_pruned(self, &placed, stage) {
            return Vec::new();
        }
        let tilings = tilings::tilings(self.levels, level + 1, &region);
        tilings.into_iter().map(|tiling| state.with(stage, place(Arc::new(tiling)))).collect()
    }

    /// The second phase: the tiles of a root stage; the unchanged state if there is no choice.
    pub(crate) fn tilings(&self, state: &State, stage: usize) -> Vec<State> {
        let of = &self.dag.stages[stage];
        let is_open = matches!(state.decision(stage), Some(Decision::Root(None)));
        if !is_open || of.fixed.is_some() {
            return vec![state.clone()];
        }
        let tilings = tilings::tilings(self.levels, 0, &of.spatial);
        let with = |tiling| state.with(stage, Decision::Root(Some(Arc::new(tiling))));
        let mut found: Vec<State> = tilings.into_iter().map(with).collect();
        let plain = found.first().cloned();
        found.retain(|state| !is_pruned(self, state, stage));
        if found.is_empty() {
            found.extend(plain);
        }
        found
    }
}
