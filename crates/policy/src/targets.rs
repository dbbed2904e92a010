//! Supported kinds of targets: one line each.

use tensorwright_machine::{Goal, Target, TargetError};
use tensorwright_schedule::LowerOptions;

use crate::gpu;
use crate::sketch::Policy;

/// The lowering options of a target.
#[must_use]
pub fn lower_options(target: &Target) -> LowerOptions {
    match target.gpu() {
        Some(gpu) => LowerOptions::device(gpu::limits(gpu)),
        None => LowerOptions::default(),
    }
}

/// The policy for a goal's kind of target. Every public function of this crate that takes a goal
/// calls this.
///
/// # Errors
/// An unsupported kind of target.
pub(crate) fn policy(goal: &Goal) -> Result<Box<dyn Policy>, TargetError> {
    match &goal.target {
        Target::Cpu(cpu) => Ok(Box::new(goal.for_target(cpu.clone()))),
        Target::Gpu(gpu) => Ok(Box::new(goal.for_target(gpu.clone()))),
        Target::Fpga(_) => Err(TargetError::Unavailable { name: goal.target.name().to_owned() }),
    }
}
