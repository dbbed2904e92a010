//! What cost models of pipelines learn from (Anderson et al. 2021, section 5.3).
//!
//! | where | what |
//! | --- | --- |
//! | `programs/` | [`RandomPipeline`]: programs made of the building blocks of image processing and networks |
//! | `candidates.rs` | [`candidates`]: states of a program, good ones and bad ones |
//! | `measure.rs` | [`measure`]: what their schedules take on this machine |
//!
//! Learning itself, and judging what was learned, are in `tensorwright-pipeline`.

#![forbid(unsafe_code)]

mod candidates;
mod measure;
mod programs;

pub use candidates::candidates;
pub use measure::{Plan, measure};
pub use programs::RandomPipeline;
