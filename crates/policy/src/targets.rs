//! The kinds of targets that there is policy for: one line each.

use tensorwright_target::{Goal, Target, TargetError};

use crate::sketch::Policy;

/// The policy for a goal's kind of target. Every entry to this crate that takes a goal asks here.
///
/// # Errors
/// A kind of target without a sketch.
pub(crate) fn policy(goal: &Goal) -> Result<Box<dyn Policy>, TargetError> {
    match &goal.target {
        Target::Cpu(cpu) => Ok(Box::new(goal.for_target(cpu.clone()))),
        Target::Gpu(_) | Target::Fpga(_) => {
            Err(TargetError::Unavailable { name: goal.target.name().to_owned() })
        }
    }
}
