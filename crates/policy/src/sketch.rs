//! [`Policy`] and [`Sketch`]: the interface of a kind of target.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tensorwright_lang::program::Program;
use tensorwright_pipeline::Weights;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{Schedule, ScheduleState};
use tensorwright_space::{Parameter, Point, Rejection};

use crate::SpaceOptions;
use crate::pipelines::{PipelineSearch, Traffic};

/// The scheduling policy of a kind of target, implemented by its goals.
pub(crate) trait Policy {
    /// The sketch of a draft, which may contain rewritings only.
    fn sketch(&self, begun: ScheduleState, options: &SpaceOptions) -> Box<dyn Sketch>;

    /// Schedules a draft by rules only.
    fn by_rules(&self, begun: ScheduleState) -> ScheduleState;

    /// Whether a nest can be lowered for the target.
    fn lowers(&self, nest: LoopNest) -> bool;

    /// A lower bound on the cycles of a program from its arithmetic and bytes.
    fn least_cycles(&self, program: &Program) -> f64;

    /// The numbers of stages of programs whose default schedules a pipeline search may improve.
    fn searched_stages(&self) -> RangeInclusive<usize>;

    /// Whether a pipeline search may improve a default schedule; `results` are the bytes of its
    /// results.
    fn may_fuse_more(&self, schedule: &Traffic, results: f64) -> bool;

    /// Whether a schedule of the same program that fuses other stages is better.
    fn is_better(&self, new: &Traffic, old: &Traffic) -> bool;

    /// Prepares a program of several stages for pipeline search, with trained weights of the cost
    /// model.
    fn pipeline(&self, program: &Program, weights: Option<Arc<Weights>>)
    -> Box<dyn PipelineSearch>;
}

/// The values of all parameters of a sketch, fixed and free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    /// The rank of each value.
    pub(crate) ranks: &'a [u32],
    /// Whether each parameter is free. Fixed parameters yield to free ones where they conflict.
    pub(crate) free: &'a [bool],
}

/// The parameters of a program on a kind of target, and their meaning.
///
/// Searches see only the parameters ([`ScheduleSpace`](crate::ScheduleSpace)). A sketch checks
/// rules without building anything, estimates costs, and decodes points to schedules.
pub(crate) trait Sketch: Debug + Send + Sync {
    /// The parameters, in the order of a point's ranks.
    fn parameters(&self) -> &[Parameter];

    /// The starting values of a search, and the values of fixed parameters.
    fn start(&self, free: &[bool]) -> Point;

    /// The names of the rules, in the order of application.
    fn rules(&self) -> Vec<&'static str>;

    /// The first rule that refuses the values, by index in [`Sketch::rules`].
    fn refusal(&self, values: Values<'_>) -> Option<(usize, Rejection)>;

    /// The parameters that the violated rule depends on; empty if the values are legal.
    fn to_blame(&self, values: Values<'_>) -> Vec<usize>;

    /// The parameters without effect given the others, with reasons.
    fn idle(&self, values: Values<'_>) -> Vec<(usize, &'static str)>;

    /// The most promising values by the cost model, best first.
    fn ranked(&self, base: Values<'_>, count: usize) -> Vec<Point>;

    /// The estimated cycles; infinite if a rule forbids the values.
    fn estimate(&self, values: Values<'_>) -> f64;

    /// The named terms of the estimate.
    fn estimate_terms(&self, values: Values<'_>) -> Vec<(&'static str, f64)>;

    /// Whether some stage has tiled reduction loops.
    fn has_sums(&self) -> bool;

    /// The schedule of the values.
    fn decode(&self, values: Values<'_>) -> Result<Schedule, Rejection>;

    /// Additional features for cost prediction, of constant length.
    fn features(&self, values: Values<'_>) -> Vec<f32>;

    /// The rewritings applied first: the algorithm.
    fn begun(&self) -> &Schedule;
}
