//! Scheduling policy: search spaces, cost models and default schedules.
//!
//! `tensorwright-schedule` is the mechanism: primitives that transform loops and refuse unsafe
//! transformations. This crate decides which schedules are good. It has one folder per kind of
//! target:
//!
//! | where | what |
//! | --- | --- |
//! | `rewriting/`, `algorithm.rs` | algorithmic rewritings of a program, for all targets |
//! | `cpu/` | the CPU sketch: groups of stages, knobs, decoding, rules, cost, ranking |
//! | `gpu/` | the GPU sketch: blocks, threads, operands in shared memory |
//! | `stages/` | target-independent analyses of stages |
//! | `sketch.rs` | the traits `Policy` (one per kind of target) and `Sketch` (parameters of a program and their meaning) |
//! | `targets.rs` | supported kinds of targets: one line each |
//! | `schedule_space.rs` | [`ScheduleSpace`]: the search space of a sketch |
//! | `pipelines/` | [`pipeline_schedules`], [`Samples`]: beam search over compute locations |
//! | `default_schedule.rs` | [`default_schedule()`]: the default schedule of a program |
//!
//! Public functions take a goal for any target and return an error for unsupported kinds.
//!
//! This crate does no I/O, reads no clock and does not panic on its inputs.

#![forbid(unsafe_code)]

mod algorithm;
pub mod cpu;
mod default_schedule;
mod gpu;
mod options;
mod pipelines;
mod rewriting;
mod schedule_space;
mod sized;
mod sketch;
mod stages;
mod targets;

pub use algorithm::alternatives;
pub use default_schedule::{DefaultSchedule, Prediction, default_schedule};
pub use options::{Preset, SpaceOptions};
pub use pipelines::{
    PipelineSchedules, PipelineSearch, Samples, pipeline_schedules, pipeline_search,
};
pub use rewriting::rewritings;
pub use schedule_space::{Count, Pruning, ScheduleSpace};
pub use sized::default_sized;
pub use targets::lower_options;
