//! Policy: which schedules to consider for a program, what they cost, and where to start.
//!
//! `tensorwright-schedule` has the mechanism: primitives that change loops and refuse what would be
//! wrong. Nothing there knows which schedule is good. That is here, in one folder per kind of target:
//!
//! | where | what |
//! | --- | --- |
//! | `rewriting/`, `algorithm.rs` | other ways to compute a program, for all targets: beginnings of schedules |
//! | `cpu/` | the sketch of processors: groups of stages, knobs, decoding, rules, cost, ranking |
//! | `sketch.rs` | `Sketch`: what a kind of target makes of a program: parameters and their meaning |
//! | `schedule_space.rs` | [`ScheduleSpace`]: a sketch as a space that searches work on |
//! | `cpu/pipeline/` | [`pipeline_schedules`]: what a beam search over where stages are computed finds |
//! | `untuned.rs` | [`untuned_schedule`]: the schedule of a program of which nothing was measured |
//!
//! Nothing here does I/O, reads a clock or panics on what it is given.

#![forbid(unsafe_code)]

mod algorithm;
pub mod cpu;
mod options;
mod rewriting;
mod schedule_space;
mod sketch;
mod untuned;

pub use algorithm::alternatives;
pub use cpu::pipeline::{Pipeline, pipeline_schedules};
pub use options::{Options, Preset};
pub use rewriting::rewritings;
pub use schedule_space::{Count, Pruning, ScheduleSpace};
pub use untuned::{Untuned, untuned_schedule};
