//! [`LearnedModel`]: prices from a neural network (section 5.2 and Appendix B).
//!
//! The network maps the features of a stage to factors on the prices of the analytical model. A
//! stage costs its amounts at these prices, and a state the sum over its stages. An untrained
//! network equals the analytical model.
//!
//! The paper embeds features of the algorithm and of the schedule separately, stacks them and
//! applies another layer. Here both are the input of one layer: on a CPU there are only 34 of them.

mod judge;
mod network;
mod samples;
mod train;
mod weights;

pub use judge::{ModelEvaluation, judge};
pub use samples::{Sample, Samples, SamplesError};
pub use train::{Training, train};
pub use weights::{Provenance, Weights, WeightsError};

use crate::dag::Dag;
use crate::levels::Levels;
use crate::state::Layout;

use super::{CostModel, Describer, Description, Kind, Machine};

/// Costs in cycles: amounts at learned prices.
#[derive(Debug, Clone)]
pub struct LearnedModel<'a> {
    describer: Describer<'a>,
    weights: &'a Weights,
}

impl<'a> LearnedModel<'a> {
    /// The model for a machine, with trained weights.
    ///
    /// ```
    /// use tensorwright_lang::Module;
    /// use tensorwright_pipeline::{Dag, LearnedModel, Levels, Machine, BeamOptions, Weights, search};
    /// use tensorwright_machine::{Cpu, Goal};
    ///
    /// let text = "def twice(float(N) a) -> (c) { b(i) = a(i) + a(i+1)  c(i) = b(i) * b(i+1) }";
    /// let program = Module::parse("twice.tc", text)?.bind("twice", [("N", 2000)])?;
    /// let goal = Goal::new(Cpu::avx512());
    /// let (dag, levels) = (Dag::new(&program), Levels::of_cpu(&goal));
    /// let weights = Weights::shipped();
    /// let model = LearnedModel::new(&dag, &levels, Machine::of(&goal), weights);
    /// assert!(search(&dag, &levels, &model, &BeamOptions::beam()).states[0].1 > 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(dag: &'a Dag, levels: &'a Levels, machine: Machine, weights: &'a Weights) -> Self {
        Self { describer: Describer::new(dag, levels, machine), weights }
    }
}

impl CostModel for LearnedModel<'_> {
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)> {
        let found = self.describer.group(layout, group);
        let features: Vec<f32> =
            found.iter().flat_map(|of| of.features.values()).copied().collect();
        let factors = self.weights.network().factors(&features);
        let prices = &self.describer.prices;
        let cost = |(of, factors): (&Description, &[f32])| {
            (of.stage, network::cost(of.amounts.all(), prices, factors))
        };
        found.iter().zip(factors.chunks(Kind::ALL.len())).map(cost).collect()
    }
}
