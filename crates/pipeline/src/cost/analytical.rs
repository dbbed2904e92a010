//! [`AnalyticalModel`]: an analytical cost model, the baseline for learned ones.
//!
//! A stage takes the larger of its instruction and load times, plus the time to move data between
//! memory levels. Recomputation counts repeatedly.

use crate::dag::Dag;
use crate::levels::Levels;
use crate::state::Layout;

use super::{CostModel, Describer, Machine};

/// Costs in cycles: amounts times the [prices](super::Kind::price) of a machine.
#[derive(Debug, Clone)]
pub struct AnalyticalModel<'a> {
    describer: Describer<'a>,
}

impl<'a> AnalyticalModel<'a> {
    /// The model for a machine.
    #[must_use]
    pub fn new(dag: &'a Dag, levels: &'a Levels, machine: Machine) -> Self {
        Self { describer: Describer::new(dag, levels, machine) }
    }
}

impl CostModel for AnalyticalModel<'_> {
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)> {
        let prices = &self.describer.prices;
        let cost = |amounts: &[f64]| amounts.iter().zip(prices).map(|(a, price)| a * price).sum();
        let found = self.describer.group(layout, group);
        found.iter().map(|of| (of.stage, cost(of.amounts.all()))).collect()
    }
}
