//! Schedules, loop nests, and lowering for emitters.
//!
//! The pipeline, one function per arrow:
//!
//! ```text
//! Program  --canonical-->  LoopNest  --Schedule::apply-->  LoopNest  --lower-->  LoweredNest
//!             one chain of loops         primitives, each          no unrolled or vectorized loop
//!             per stage                  a checked rewriting       left, guards only where needed
//! ```
//!
//! One loop nest form serves all steps, and it prints as pseudo-C after each of them. A
//! [`LoweredNest`] is a fully lowered one, the only input of emitters. It is independent of the
//! target: features of a target (GPU blocks and threads, shared memory, tiles of a matrix unit) are
//! [kinds of loops](nest::LoopKind), [memories of buffers](nest::Memory) or [nodes](nest::Node).
//!
//! The crate does no I/O, reads no clock, and never panics on its input.

#![forbid(unsafe_code)]

pub mod access;
mod bound;
pub mod canonical;
pub mod check;
pub mod interface;
pub mod limits;
pub mod lower;
pub mod nest;
pub mod placement;
pub mod primitives;
mod refusal;
mod renaming;
pub mod schedule;
pub mod schedule_state;
pub mod stage_map;
mod tensors;
mod window;
pub mod words;
pub mod workspace;

pub use canonical::{canonical, canonical_sized};
pub use interface::Interface;
pub use lower::{
    DeviceLimits, LowerError, LowerOptions, LoweredNest, lower, lower_traced, lower_with,
};
pub use nest::LoopNest;
pub use refusal::Refusal;
pub use schedule::{Schedule, ScheduleError};
pub use schedule_state::ScheduleState;
pub use stage_map::StageMap;
pub use window::Window;
