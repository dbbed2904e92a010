//! Plans: what a schedule decides, as one value.
//!
//! A [`Plan`] has one decision per stage: a [`Placement`] (at which loop of which other stage it is
//! computed) and a [`Tiling`] (its loops, from the outermost to the lanes of vectors). A stage has
//! exactly one of each, so two decisions cannot contradict each other.
//!
//! ```text
//! row chains, blocks of rows, beam search    --propose-->    Plan    --emit-->    ScheduleState
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `plan.rs` | [`Plan`]: a persistent map; a copy with one decision changed shares the rest |
//! | `placement.rs` | [`Placement`], and [`LoopRef`]: a level of the loops of a stage |
//! | `tiling.rs` | [`Tiling`]: loops with sizes, levels and kinds; packing; partial results |
//! | `levels.rs` | the levels of each kind of target, as a table |
//! | `stages.rs` | [`Stages`]: names, axes and readers of the stages of a nest |
//! | `emit/` | [`Emitter`] and [`emit()`]: a plan to a schedule, applied once |
//!
//! This crate decides nothing: `tensorwright-policy` proposes plans.

#![forbid(unsafe_code)]

pub mod emit;
pub mod levels;
mod placement;
mod plan;
mod stages;
mod tiling;

pub use emit::{Emitter, Open, emit};
pub use levels::{Level, Levels};
pub use placement::{LoopRef, Placement};
pub use plan::{Plan, StagePlan};
pub use stages::{Axis, AxisId, Stage, StageId, Stages};
pub use tiling::{LoopKind, Pack, PlannedLoop, Tiling};
