//! What a kind of target has: [`Policy`], and [`Sketch`], what it makes of a program.

use std::fmt::Debug;
use std::sync::Arc;

use tensorwright_lang::program::Program;
use tensorwright_pipeline::Weights;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{Draft, Schedule};
use tensorwright_space::{Parameter, Point, Rejection};

use crate::SpaceOptions;
use crate::pipelines::PipelineSearch;

/// What there is for a kind of target. Goals of that kind have it.
pub(crate) trait Policy {
    /// What the target makes of what a draft has begun: it may have rewritten stages, and nothing else.
    fn sketch(&self, begun: Draft, options: &SpaceOptions) -> Box<dyn Sketch>;

    /// What rules alone make of what a draft has begun.
    fn by_rules(&self, begun: Draft) -> Draft;

    /// Whether a nest can be lowered for the target.
    fn lowers(&self, nest: LoopNest) -> bool;

    /// The cycles that arithmetic and bytes of a program need at least.
    fn least_cycles(&self, program: &Program) -> f64;

    /// The bytes of the cache beyond which memory is slow.
    fn cache(&self) -> i64;

    /// A program of several stages as searches over where they are computed see it, with what a cost model has learned.
    fn pipeline(&self, program: &Program, weights: Option<Arc<Weights>>)
    -> Box<dyn PipelineSearch>;
}

/// The values of all parameters of a sketch, fixed and free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    /// The rank of each value.
    pub(crate) ranks: &'a [u32],
    /// Whether each parameter is free. A fixed one gives way where the free ones leave it no choice.
    pub(crate) free: &'a [bool],
}

/// What a kind of target makes of a program: parameters, and what their values mean.
///
/// Searches see only the parameters ([`ScheduleSpace`](crate::ScheduleSpace)). A sketch knows which rules
/// forbid a point before anything is built, what a point costs by a model, and which schedule it stands for.
pub(crate) trait Sketch: Debug + Send + Sync {
    /// The parameters, in the order of a point's ranks.
    fn parameters(&self) -> &[Parameter];

    /// The values at which a search may start, and at which parameters stay that are not free.
    fn start(&self, free: &[bool]) -> Point;

    /// The names of the rules, in the order in which they are applied.
    fn rules(&self) -> Vec<&'static str>;

    /// The first rule that refuses the values, by its place in [`Sketch::rules`].
    fn refusal(&self, values: Values<'_>) -> Option<(usize, Rejection)>;

    /// The parameters that the rule looks at that refuses the values; none if no rule does.
    fn to_blame(&self, values: Values<'_>) -> Vec<usize>;

    /// Parameters whose value makes no difference beside the others, with the reason.
    fn idle(&self, values: Values<'_>) -> Vec<(usize, &'static str)>;

    /// The most promising values by the cost model, best first.
    fn ranked(&self, base: Values<'_>, count: usize) -> Vec<Point>;

    /// The estimated cycles; infinite where a rule forbids the values.
    fn estimate(&self, values: Values<'_>) -> f64;

    /// What the estimate is made of, with names.
    fn estimate_terms(&self, values: Values<'_>) -> Vec<(&'static str, f64)>;

    /// Whether some stage sums over loops that are tiled.
    fn has_sums(&self) -> bool;

    /// The schedule of the values.
    fn decode(&self, values: Values<'_>) -> Result<Schedule, Rejection>;

    /// Numbers that help a model to predict the cost, beyond the parameters; always as many.
    fn features(&self, values: Values<'_>) -> Vec<f32>;

    /// The steps that the program went through before: its algorithm.
    fn begun(&self) -> &Schedule;
}
