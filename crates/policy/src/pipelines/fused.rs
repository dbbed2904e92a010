//! Replaces a schedule by one from pipeline search that fuses more.
//!
//! Rules compute stencils in blocks of rows and fuse epilogues; all other intermediate tensors go
//! through memory, on devices with a launch each. If that costs much, a greedy search often finds
//! better compute locations.

use tensorwright_lang::program::Program;
use tensorwright_pipeline::BeamOptions;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::primitives::Primitive;
use tensorwright_schedule::{Schedule, canonical};

use super::traffic::Traffic;
use crate::sketch::Policy;

/// The maximum number of states to evaluate, which bounds the time.
const MOST_ASKED: usize = 1 << 14;

/// A schedule that fuses more than the given one and is better for the target, with its estimated
/// cycles; `None` if the search finds none.
pub(crate) fn instead_of(
    program: &Program,
    policy: &dyn Policy,
    schedule: &Schedule,
) -> Option<(Schedule, f64)> {
    let is_tensorized =
        schedule.steps.iter().any(|step| matches!(step.primitive, Primitive::Tensorize(_)));
    if is_tensorized || !policy.searched_stages().contains(&program.stages.len()) {
        return None;
    }
    let canonical = canonical(program);
    let old = traffic(&canonical, schedule)?;
    let results = program.outputs.iter().map(|output| program.tensor(*output).bytes() as f64);
    if !policy.may_fuse_more(&old, results.sum()) {
        return None;
    }
    let pipeline = policy.pipeline(program, None);
    let mut asked = 0;
    let found = pipeline.search_while(&BeamOptions::greedy(), &mut || {
        asked += 1;
        asked <= MOST_ASKED
    });
    let (state, cycles) = found.states.first()?;
    let schedule = pipeline.decode(state).ok()?;
    let new = traffic(&canonical, &schedule)?;
    policy.is_better(&new, &old).then_some((schedule, *cycles))
}

/// The traffic and the work of a schedule.
fn traffic(canonical: &LoopNest, schedule: &Schedule) -> Option<Traffic> {
    Some(Traffic::of(canonical, &schedule.apply(canonical.clone()).ok()?))
}
