//! The schedules of programs that nobody has tuned: by the cost model, and by rules.

use tensorwright_lang::program::Program;
use tensorwright_schedule::default_schedule;
use tensorwright_space::untuned_schedule;
use tensorwright_testkit::Rng;

use super::{Made, small, target};
use crate::differential::tally::Tally;

/// One of them, for random sizes of a processor.
pub(super) fn draw(program: &Program, rng: &mut Rng, tally: &mut Tally) -> Option<Made> {
    let target = target(rng);
    let (name, schedule) = if rng.chance(60) {
        ("[untuned]", untuned_schedule(program, &target))
    } else {
        ("[default]", default_schedule(program, &target))
    };
    let made = small(schedule, program, tally);
    tally.count(name, made.is_some());
    made
}
