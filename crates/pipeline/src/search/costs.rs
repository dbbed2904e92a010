//! Costs of states, those of groups remembered (section 3.3), and of whole states: later passes meet many again.

use std::collections::HashMap;

use crate::cost::CostModel;
use crate::dag::Dag;
use crate::state::{Layout, State};

use super::Statistics;

/// What states cost.
pub(super) struct Costs<'a> {
    pub(super) dag: &'a Dag,
    pub(super) model: &'a dyn CostModel,
    /// What is remembered; `None` if nothing is.
    pub(super) known: Option<CostCache>,
    pub(super) statistics: Statistics,
}

/// Costs that are remembered.
#[derive(Default)]
pub(super) struct CostCache {
    /// Of groups, by key.
    groups: HashMap<(usize, u64), f64>,
    /// Of states, by their hash.
    states: HashMap<u64, f64>,
}

impl Costs<'_> {
    /// The cost of what is decided.
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
