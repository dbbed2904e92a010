//! Beam search over compute locations, for all targets.
//!
//! | where | what |
//! | --- | --- |
//! | `pipeline_search.rs` | [`PipelineSearch`]: the interface of a target |
//! | `samples.rs` | [`Samples`]: the results of repeated searches |
//! | `proposals.rs` | [`PipelineSchedules`]: the results of one search |
//! | `begin.rs` | the common first steps of all schedules |
//! | `fused.rs`, `traffic.rs` | when the default schedule comes from a search |

mod begin;
mod fused;
mod pipeline_search;
mod proposals;
mod samples;
mod traffic;

use std::sync::Arc;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_pipeline::{BeamOptions, Weights};

use crate::targets::policy;

pub(crate) use begin::begin;
pub(crate) use fused::instead_of;
pub use pipeline_search::PipelineSearch;
pub use proposals::PipelineSchedules;
pub use samples::Samples;
pub(crate) use traffic::{ON_PROCESSORS, Traffic};

/// States to try per requested schedule: some can be neither applied nor lowered.
const TRIES: usize = 16;

/// Prepares a program for pipeline search. `weights` replaces the [shipped](Weights::shipped)
/// weights of the CPU cost model, which is a neural network.
///
/// # Errors
/// An unsupported kind of target.
pub fn pipeline_search(
    program: &Program,
    goal: &Goal,
    weights: Option<Arc<Weights>>,
) -> Result<Box<dyn PipelineSearch>, TargetError> {
    Ok(policy(goal)?.pipeline(program, weights))
}

/// Schedules of a program from a beam search over compute locations and tilings, with their
/// estimated cycles, best first. All of them apply to the canonical nest and can be lowered. There
/// may be fewer than requested.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_pipeline::BeamOptions;
/// use tensorwright_policy::pipeline_schedules;
/// use tensorwright_machine::{Cpu, Goal};
///
/// let text = "def blur(float(H,W) in) -> (out) {
///   bx(y,x) = in(y,x) + in(y,x+1)
///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
/// }";
/// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 2000), ("W", 2000)])?;
/// let goal = Goal::new(Cpu::avx512()).with_workers(2).into();
/// let found = pipeline_schedules(&program, &goal, &BeamOptions::beam(), 5)?;
/// assert!(!found.schedules.is_empty() && found.schedules.is_sorted_by(|(_, a), (_, b)| a <= b));
/// assert!(found.refused.is_empty(), "{:?}", found.refused);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An unsupported kind of target.
pub fn pipeline_schedules(
    program: &Program,
    goal: &Goal,
    options: &BeamOptions,
    count: usize,
) -> Result<PipelineSchedules, TargetError> {
    let pipeline = pipeline_search(program, goal, None)?;
    let mut found = PipelineSchedules::default();
    let states = pipeline.search_while(options, &mut || true).states;
    for (state, cost) in states.iter().take(count.saturating_mul(TRIES)) {
        if found.schedules.len() >= count {
            break;
        }
        match pipeline.decode(state) {
            // Two states may decode to the same schedule if extents are small.
            Ok(schedule) if found.schedules.iter().any(|(known, _)| *known == schedule) => {}
            Ok(schedule) => found.schedules.push((schedule, *cost)),
            Err(refused) => found.refused.push(refused),
        }
    }
    Ok(found)
}
