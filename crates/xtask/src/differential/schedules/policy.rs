//! Default schedules, by the cost model and by rules.

use tensorwright_lang::program::Program;
use tensorwright_machine::TargetError;
use tensorwright_policy::cpu::rules::schedule_by_rules;
use tensorwright_policy::default_schedule;
use tensorwright_testkit::Rng;

use super::{DrawnSchedule, device_goal, goal, small};
use crate::differential::tally::Tally;

/// A default schedule for random CPU parameters.
pub(super) fn draw(
    program: &Program,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Result<Option<DrawnSchedule>, TargetError> {
    let goal = goal(rng);
    let (name, schedule) = if rng.percent(60) {
        ("[untuned]", default_schedule(program, &goal.into())?)
    } else {
        ("[default]", schedule_by_rules(program, &goal))
    };
    let made = small(schedule, program, tally);
    tally.count(name, made.is_some());
    Ok(made)
}

/// A default schedule for random device parameters.
pub(super) fn for_device(
    program: &Program,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Result<Option<DrawnSchedule>, TargetError> {
    let schedule = default_schedule(program, &device_goal(rng))?;
    let made = small(schedule, program, tally);
    tally.count("[untuned]", made.is_some());
    Ok(made)
}
