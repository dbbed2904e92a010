//! Training data of the pipeline cost model (Anderson et al. 2021).
//!
//! | where | what |
//! | --- | --- |
//! | `programs/` | [`RandomPipeline`]: random programs from building blocks of image processing and networks |
//! | `candidates.rs` | [`candidates`]: training states of a program, good ones and bad ones |
//! | `measure.rs` | [`measure`]: times of their schedules on this machine |
//!
//! Training and evaluation are in `tensorwright-pipeline`.

#![forbid(unsafe_code)]

mod candidates;
mod measure;
mod programs;

pub use candidates::candidates;
pub use measure::{Plan, measure};
pub use programs::RandomPipeline;
