//! Schedules of programs whose sizes vary.

use tensorwright_lang::program::SizedProgram;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_schedule::{LoopNest, Schedule};

use crate::default_schedule;

/// A default schedule of a program for a range of sizes, whose loops are `nest`: that of the likely
/// sizes, without the steps that need fixed sizes.
///
/// # Errors
/// An unsupported kind of target.
pub fn default_sized(
    program: &SizedProgram,
    mut nest: LoopNest,
    goal: &Goal,
) -> Result<Schedule, TargetError> {
    let wanted = default_schedule(&program.likely, goal)?;
    let mut kept = Schedule::default();
    for step in wanted.steps {
        if step.apply(&mut nest).is_ok() {
            kept.steps.push(step);
        }
    }
    Ok(kept)
}
