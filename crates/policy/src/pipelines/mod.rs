//! Schedules by a search over where stages are computed, whatever the target.
//!
//! | where | what |
//! | --- | --- |
//! | `pipeline_search.rs` | [`PipelineSearch`]: what each kind of target has |
//! | `samples.rs` | [`Samples`]: what one search after another finds |
//! | `proposals.rs` | [`PipelineSchedules`]: what one search proposes |
//! | `begin.rs` | what the schedules of all states begin with |
//! | `fused.rs` | whether a search is worth it where nothing is measured |

mod begin;
mod fused;
mod pipeline_search;
mod proposals;
mod samples;

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

/// States that are tried for each schedule that is wanted: some can be neither applied nor lowered.
const TRIES: usize = 16;

/// A program as searches over pipelines see it. The cost model of processors is a network: `weights` are those that it has
/// learned, if not the ones that [come with this version](Weights::shipped).
///
/// # Errors
/// A kind of target that there is no policy for.
pub fn pipeline_search(
    program: &Program,
    goal: &Goal,
    weights: Option<Arc<Weights>>,
) -> Result<Box<dyn PipelineSearch>, TargetError> {
    Ok(policy(goal)?.pipeline(program, weights))
}

/// Schedules of a program by a beam search over where its stages are computed and in which tiles, the best by the model
/// first, with the cycles that it expects. All of them apply to the canonical nest and can be lowered; there may be fewer
/// than are wanted.
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
/// A kind of target that there is no policy for.
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
            // Two states may come to the same where extents are small.
            Ok(schedule) if found.schedules.iter().any(|(known, _)| *known == schedule) => {}
            Ok(schedule) => found.schedules.push((schedule, *cost)),
            Err(refused) => found.refused.push(refused),
        }
    }
    Ok(found)
}
