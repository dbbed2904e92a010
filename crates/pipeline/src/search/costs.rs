//! Costs of states, with memoization of groups (section 3.3) and states.

use std::collections::HashMap;

use crate::cost::CostModel;
use crate::dag::Dag;
use crate::state::{Layout, State};

use super::Statistics;

/// Computes the costs of states.
pub(super) struct Costs<'a> {
    pub(super) dag: &'a Dag,
    pub(super) model: &'a dyn CostModel,
    /// The memoized costs; `None` without memoization.
    pub(super) known: Option<CostCache>,
    pub(super) statistics: Statistics,
}

/// Memoized costs.
#[derive(Default)]
pub(super) struct CostCache {
    /// The costs of groups, by key.
    groups: HashMap<(usize, u64), f64>,
    /// The costs of states, by hash.
    states: HashMap<u64, f64>,
}

impl Costs<'_> {
    /// The cost of a state.
    pub(super) fn of(&mut self, state: &State) -> f64 {
        self.statistics.states += 1;
        let hash = state.full_hash();
        if let Some(cost) = self.known.as_ref().and_then(|known| known.states.get(&hash)) {
            return *cost;
        }
        self.statistics.computed += 1;
        let layout = Layout::new(self.dag, state);
        let mut sum = 0.0;
        for key in layout.keys() {
            let known = self.known.as_ref().and_then(|known| known.groups.get(&key)).copied();
            sum += known.unwrap_or_else(|| {
                self.statistics.groups += 1;
                let cost = self.model.group(&layout, key.0).iter().map(|(_, cost)| cost).sum();
                if let Some(known) = &mut self.known {
                    known.groups.insert(key, cost);
                }
                cost
            });
        }
        if let Some(known) = &mut self.known {
            known.states.insert(hash, sum);
        }
        sum
    }

    /// The cost of every stage.
    pub(super) fn of_stages(&self, state: &State) -> Vec<f64> {
        let layout = Layout::new(self.dag, state);
        let mut costs = vec![0.0; self.dag.stages.len()];
        for group in layout.groups() {
            self.model
                .group(&layout, group)
                .into_iter()
                .for_each(|(stage, cost)| costs[stage] += cost);
        }
        costs
    }
}
