//! Cost models of states.
//!
//! A cost is a sum over groups of stages that share loops. The cost of a group depends only on its
//! own decisions, so a search computes it once for all states that contain the group (section 3.3).
//! On CPUs, models differ in the prices of the same [amounts](Amounts): [`AnalyticalModel`] derives
//! them from a machine, [`LearnedModel`] uses a neural network. [`GpuModel`] is an analytical model
//! for GPUs.

mod amounts;
mod analytical;
mod describe;
mod device;
mod features;
mod learned;
mod machine;
mod noisy;

pub use amounts::{Amounts, Kind};
pub use analytical::AnalyticalModel;
pub use describe::{Describer, Description};
pub use device::GpuModel;
pub use features::Features;
pub use learned::{
    LearnedModel, ModelEvaluation, Provenance, Sample, Samples, SamplesError, Training, Weights,
    WeightsError, judge, train,
};
pub use machine::Machine;
pub use noisy::NoisyModel;

use crate::state::Layout;

/// A cost model: analytical or learned.
pub trait CostModel {
    /// The costs of a group's stages, in any unit.
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)>;

    /// The cost of a state: the sum over its groups.
    fn state(&self, layout: &Layout<'_>) -> f64 {
        let group = |group| self.group(layout, group).into_iter().map(|(_, cost)| cost);
        layout.groups().flat_map(group).sum()
    }
}
