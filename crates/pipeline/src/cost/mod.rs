//! What a state costs.
//!
//! A cost is a sum over groups of stages that share loops, each of which depends on its own decisions alone: so a search
//! computes it once for all states that have the group (section 3.3).

mod analytical;
mod machine;

pub use analytical::Analytical;
pub use machine::Machine;

use crate::state::Layout;

/// What groups cost: a model that is computed, or learned.
pub trait CostModel {
    /// The cost of a group, in any unit, as the costs of its stages.
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)>;
}
