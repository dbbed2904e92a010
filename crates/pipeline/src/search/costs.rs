//! Costs of states, those of groups remembered (section 3.3).

use std::collections::HashMap;

use crate::cost::CostModel;
use crate::dag::Dag;
use crate::state::{Layout, State};

use super::Statistics;

/// What states cost.
pub(super) struct Costs<'a> {
    pub(super) dag: &'a Dag,
    pub(super) model: &'a dyn CostModel,
    /// Costs of groups by key; `None` if nothing is remembered.
    pub(super) known: Option<HashMap<(usize, u64), f64>>,
    pub(super) statistics: Statistics,
}

impl Costs<'_> {
    /// The cost of what is decided.
    pub(super) fn of(&mut self, state: &State) -> f64 {
        self.statistics.states += 1;
        let layout = Layout::new(self.dag, state);
        let mut sum = 0.0;
        for key in layout.keys() {
            let known = self.known.as_ref().and_then(|known| known.get(&key)).copied();
            sum += known.unwrap_or_else(|| {
                self.statistics.groups += 1;
                let cost = self.model.group(&layout, key.0).iter().map(|(_, cost)| cost).sum();
                if let Some(known) = &mut self.known {
                    known.insert(key, cost);
                }
                cost
            });
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
