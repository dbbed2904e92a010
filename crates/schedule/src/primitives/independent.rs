//! Checks that the iterations of a loop are independent.
//!
//! [`parallel`](super::Parallel) and [`bind`](super::Bind) use this.

use super::find::{holds_scatter, refuse_window, sums_of};
use crate::nest::{Loop, LoopNest, Role};
use crate::refusal::Refusal;

/// The way in which the iterations of a loop are to run, for messages.
pub(super) struct IterationMode<'a> {
    /// The new state of the loop, such as `parallel`.
    pub(super) state: String,
    /// The name of concurrent iterations, such as `workers`.
    pub(super) who: &'a str,
    /// The verb for scheduling another loop, such as `parallelize`.
    pub(super) verb: &'a str,
    /// The tails that a split may use.
    pub(super) tails: &'a str,
}

impl IterationMode<'_> {
    /// A refusal of a loop of a stage.
    pub(super) fn refuse(&self, nest: &LoopNest, stage: &str, l: &Loop, why: &str) -> Refusal {
        let name = nest.var_name(l.var);
        Refusal::new(format!("loop `{name}` of `{stage}` cannot be {}: {why}", self.state))
    }

    /// Refuses a loop whose iterations depend on each other or compute elements twice.
    pub(super) fn expect_independent(
        &self,
        nest: &LoopNest,
        stage: &str,
        l: &Loop,
    ) -> Result<(), Refusal> {
        refuse_window(nest, stage, l, &self.state)?;
        let IterationMode { who, verb, tails, .. } = self;
        let name = nest.var_name(l.var);
        let (why, help) = match l.role {
            Role::Reduce if holds_scatter(l) => (
                format!(
                    "it goes over terms of a scatter, and {who} would add to the same elements"
                ),
                format!("give each iteration a copy of its own: `{stage}: privatize {name}`"),
            ),
            Role::Reduce => (
                format!("it is a reduction, and {who} would add to the same elements"),
                format!("make partial results with `rfactor` first, or {verb} a spatial loop"),
            ),
            Role::Scan => (
                format!("it is a recurrence, and {who} would need each other's results"),
                format!("{verb} another loop of the stage"),
            ),
            Role::Spatial if !l.terms_of.is_empty() => (
                format!(
                    "it goes over terms of {}, and {who} would add to the same elements",
                    sums_of(nest, l)
                ),
                format!("{verb} a loop around it"),
            ),
            Role::Spatial if l.overlaps => (
                format!("its tail is shifted inwards, so two {who} would make the same elements"),
                format!("split it with the tail {tails}"),
            ),
            Role::Spatial => return Ok(()),
        };
        Err(self.refuse(nest, stage, l, &why).help(help))
    }
}
