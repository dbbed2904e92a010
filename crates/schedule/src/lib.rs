//! Schedules, the loop nests they act on, and lowering to what emitters take.
//!
//! The journey, one function per arrow:
//!
//! ```text
//! Program  --canonical-->  LoopNest  --Schedule::apply-->  LoopNest  --lower-->  LoweredNest
//!             one chain of loops         primitives, each          no unrolled or vectorized loop
//!             per stage                  a checked rewriting       left, guards only where needed
//! ```
//!
//! There is one loop nest form from beginning to end, and it prints as pseudo-C at every step; a
//! [`LoweredNest`] is one in which nothing is left to do, and all that emitters take. It
//! knows no target: what a target needs (GPU blocks and threads, shared memory, tiles of a matrix
//! unit) is a [kind of loop](nest::LoopKind), a [memory of a buffer](nest::Memory) or a
//! [node](nest::Node).
//!
//! Nothing here does I/O, reads a clock or panics on what it is given.

#![forbid(unsafe_code)]

pub mod access;
mod bound;
pub mod canonical;
pub mod check;
pub mod draft;
pub mod interface;
pub mod limits;
pub mod lower;
pub mod nest;
pub mod placement;
pub mod primitives;
mod refusal;
mod renaming;
pub mod schedule;
pub mod stage_map;
mod tensors;
mod window;
pub mod words;
pub mod workspace;

pub use canonical::canonical;
pub use draft::Draft;
pub use interface::Interface;
pub use lower::{
    DeviceLimits, LowerError, LowerOptions, LoweredNest, lower, lower_traced, lower_with,
};
pub use nest::LoopNest;
pub use refusal::Refusal;
pub use schedule::{Schedule, ScheduleError};
pub use stage_map::StageMap;
pub use window::Window;
