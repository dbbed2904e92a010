//! Schedules proposed by the pipeline search.

use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_pipeline::BeamOptions;
use tensorwright_policy::pipeline_schedules;
use tensorwright_testkit::Rng;

use super::{DrawnSchedule, small};
use crate::differential::tally::Tally;

/// One of the best results of a search with a random seed.
pub(super) fn draw(
    program: &Program,
    goal: &Goal,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Result<Option<DrawnSchedule>, TargetError> {
    let options = if rng.percent(70) { BeamOptions::greedy() } else { BeamOptions::beam() };
    let options = options.with_seed(rng.next_u64());
    let mut found = pipeline_schedules(program, goal, &options, 4)?.schedules;
    tally.count("[pipeline]", !found.is_empty());
    if found.is_empty() {
        return Ok(None);
    }
    let (schedule, _) = found.swap_remove(rng.index(found.len()));
    Ok(small(schedule, program, tally))
}
