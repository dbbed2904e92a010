//! The kinds of targets that there is policy for: one line each.

use tensorwright_machine::{Goal, Target, TargetError};
use tensorwright_schedule::LowerOptions;

use crate::gpu;
use crate::sketch::Policy;

/// How loops are lowered for a target.
#[must_use]
pub fn lower_options(target: &Target) -> LowerOptions {
    match target.gpu() {
        Some(gpu) => LowerOptions::device(gpu::limits(gpu)),
        None => LowerOptions::default(),
    }
}

/// The policy for a goal's kind of target. Every entry to this crate that takes a goal asks here.
///
/// # Errors
/// A kind of target without a sketch.
pub(crate) fn policy(goal: &Goal) -> Result<Box<dyn Policy>, TargetError> {
    match &goal.target {
        Target::Cpu(cpu) => Ok(Box::new(goal.for_target(cpu.clone()))),
        Target::Gpu(gpu) => Ok(Box::new(goal.for_target(gpu.clone()))),
        Target::Fpga(_) => Err(TargetError::Unavailable { name: goal.target.name().to_owned() }),
    }
}
