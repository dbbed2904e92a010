//! The pipeline autoscheduler: beam search over compute locations and tilings.
//!
//! It implements Anderson et al., "Efficient Automatic Scheduling of Imaging and Vision Pipelines
//! for the GPU" (2021), which extends Adams et al. (2019).
//!
//! The search works on compact states and never touches a loop nest; `tensorwright-policy` turns
//! the best states into schedules. Section numbers in comments refer to the paper.
//!
//! | where | what |
//! | --- | --- |
//! | `dag/` | [`Dag`]: stages, edges and footprints |
//! | `levels.rs` | [`Levels`]: the loop levels of a target, outermost first |
//! | `state/` | [`State`]: the decisions so far; its structural hash and its [layout](Layout) of groups and regions |
//! | `enumerate/` | the options of a stage: compute location, tiles (4.1 to 4.3) and pruning (4.6) |
//! | `cost/` | [`CostModel`]: an [analytical](AnalyticalModel) and a [learned](LearnedModel) model for CPUs, an analytical one for [GPUs](GpuModel) |
//! | `search/` | [`search`]: beam search with hierarchical sampling, freezing and memoization |
//!
//! This crate does no I/O, reads no clock and does not panic on its inputs.

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
