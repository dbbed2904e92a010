//! Schedules by a search over where stages are computed.

use tensorwright_lang::program::Program;
use tensorwright_pipeline::Options;
use tensorwright_target::{Goal, TargetError};

use crate::proposals::PipelineSchedules;
use crate::targets::policy;

/// Schedules of a program by a beam search over where its stages are computed and in which tiles, the best by the model
/// first, with the cycles that it expects. All of them apply to the canonical nest and can be lowered; there may be fewer
/// than are wanted.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_pipeline::Options;
/// use tensorwright_policy::pipeline_schedules;
/// use tensorwright_target::{Cpu, Goal};
///
/// let text = "def blur(float(H,W) in) -> (out) {
///   bx(y,x) = in(y,x) + in(y,x+1)
///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
/// }";
/// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 2000), ("W", 2000)])?;
/// let goal = Goal::new(Cpu::avx512()).with_workers(2).into();
/// let found = pipeline_schedules(&program, &goal, &Options::beam(), 5)?;
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
    options: &Options,
    count: usize,
) -> Result<PipelineSchedules, TargetError> {
    Ok(policy(goal)?.pipelines(program, options, count))
}
