//! CPU scheduling: register and cache tiling, vectorization, packing, parallel loops.
//!
//! The files build on each other in this order:
//!
//! | where | what |
//! | --- | --- |
//! | `group.rs` | groups of stages that are tiled together, with their analysis |
//! | `tiling.rs` | the scheduling decisions of a group |
//! | `knobs/` | one file per kind of decision: its parameters, values, start, rules |
//! | `fusion.rs` | stages that are computed together, as a plan |
//! | `loops/` | the loops of a stage, by kind of stage: rows, products, stencils |
//! | `rows/` | row-wise fusion: analysis, decisions, plans |
//! | `blocks/` | blocks of rows: fused products, row chains and stencils |
//! | `groups.rs`, `sketch.rs` | a program as groups, chains and blocks with parameters |
//! | `cost/`, `features.rs` | the analytical cost model, and features for learned ones |
//! | `work.rs` | the minimum work of parallel loops |
//! | `decode/`, `rank.rs` | decoding of points to schedules; the most promising points |
//! | `pipeline/` | decoding of pipeline-search states to schedules |
//! | `entry.rs`, `policy.rs` | implementations of `Sketch` and `Policy` |
//! | `rules/`, `register_tile.rs` | heuristic schedules without a model |

pub(crate) mod blocks;
pub(crate) mod cost;
pub(crate) mod decode;
mod entry;
pub(crate) mod features;
pub(crate) mod fusion;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod knobs;
pub(crate) mod loops;
pub(crate) mod pipeline;
mod policy;
pub(crate) mod rank;
pub(crate) mod register_tile;
pub(crate) mod rows;
pub mod rules;
pub(crate) mod sketch;
pub(crate) mod tiling;
pub(crate) mod work;

pub use pipeline::Pipeline;
