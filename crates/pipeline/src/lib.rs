//! Where the stages of a pipeline are computed, and in which tiles: the autoscheduler of Anderson et al., "Efficient
//! Automatic Scheduling of Imaging and Vision Pipelines for the GPU" (2021), which extends Adams et al. (2019).
//!
//! The search works on light states and never touches a loop nest; policy makes schedules of those that survive.
//! Sections in comments are those of the paper.
//!
//! | where | what |
//! | --- | --- |
//! | `dag/` | [`Dag`]: stages, edges, and which region of a producer a region of a consumer needs |
//! | `levels.rs` | [`Levels`]: the kinds of loops that a target has, outermost first |
//! | `state/` | [`State`]: what is decided so far; its structural hash and its [layout](Layout) of groups and regions |
//! | `enumerate/` | the options of a stage: where it is computed, in which tiles (4.1 to 4.3), and what is pruned (4.6) |
//! | `cost/` | [`CostModel`]: an [analytical one](AnalyticalModel) for processors, one that is [learned](LearnedModel), one for [devices](GpuModel) |
//! | `search/` | [`search`]: beam search with hierarchical sampling, freezing and memoization |
//!
//! Nothing here does I/O, reads a clock or panics on what it is given.

#![forbid(unsafe_code)]

mod cost;
mod dag;
mod enumerate;
mod levels;
mod search;
mod state;

pub use cost::{
    Amounts, AnalyticalModel, CostModel, Describer, Description, Features, GpuModel, Kind,
    LearnedModel, Machine, ModelEvaluation, NoisyModel, Provenance, Sample, Samples, SamplesError,
    Training, Weights, WeightsError, judge, train,
};
pub use dag::{Dag, Edge, Footprint, Input, Reach, Source, Stage};
pub use levels::{Level, LevelKind, Levels};
pub use search::{BeamOptions, Outcome, Statistics, search, search_while};
pub use state::{Decision, Layout, Member, State, Tiling};
