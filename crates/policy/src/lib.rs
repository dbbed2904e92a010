//! Policy: which schedules to consider for a program, what they cost, and where to start.
//!
//! `tensorwright-schedule` has the mechanism: primitives that change loops and refuse what would be
//! wrong. Nothing there knows which schedule is good. That is here, in one folder per kind of target:
//!
//! | where | what |
//! | --- | --- |
//! | `rewriting/`, `algorithm.rs` | other ways to compute a program, for all targets: beginnings of schedules |
//! | `cpu/` | the sketch of processors: groups of stages, knobs, decoding, rules, cost, ranking |
//! | `gpu/` | the sketch of graphics processors: blocks, threads, operands in shared memory |
//! | `stages/` | what is known of stages, whatever they are scheduled for |
//! | `sketch.rs` | `Policy` and `Sketch`: what a kind of target has, and what it makes of a program: parameters and their meaning |
//! | `targets.rs` | the kinds of targets that there is policy for: one line each |
//! | `schedule_space.rs` | [`ScheduleSpace`]: a sketch as a space that searches work on |
//! | `pipelines/` | [`pipeline_schedules`], [`Samples`]: what searches over where stages are computed find |
//! | `default_schedule.rs` | [`default_schedule`]: the schedule of a program of which nothing was measured |
//!
//! What is named here takes a goal of any target, and says which kinds it knows nothing of.
//!
//! Nothing here does I/O, reads a clock or panics on what it is given.

#![forbid(unsafe_code)]

mod algorithm;
pub mod cpu;
mod default_schedule;
mod gpu;
mod options;
mod pipelines;
mod rewriting;
mod schedule_space;
mod sketch;
mod stages;
mod targets;

pub use algorithm::alternatives;
pub use default_schedule::{DefaultSchedule, default_schedule};
pub use options::{Preset, SpaceOptions};
pub use pipelines::{
    PipelineSchedules, PipelineSearch, Samples, pipeline_schedules, pipeline_search,
};
pub use rewriting::rewritings;
pub use schedule_space::{Count, Pruning, ScheduleSpace};
pub use targets::lower_options;
