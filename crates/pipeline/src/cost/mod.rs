//! What a state costs.
//!
//! A cost is a sum over groups of stages that share loops, each of which depends on its own decisions alone: so a search
//! computes it once for all states that have the group (section 3.3). Every model puts prices on the same
//! [amounts](Amounts): [`AnalyticalModel`] those that follow from a machine, [`LearnedModel`] those of a network. [`GpuModel`] is
//! computed for graphics processors.

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

/// What groups cost: a model that is computed, or learned.
pub trait CostModel {
    /// The cost of a group, in any unit, as the costs of its stages.
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)>;

    /// The cost of a state: that of all its groups.
    fn state(&self, layout: &Layout<'_>) -> f64 {
        let group = |group| self.group(layout, group).into_iter().map(|(_, cost)| cost);
        layout.groups().flat_map(group).sum()
    }
}
