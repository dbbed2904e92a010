//! Policy for processors: loops in tiles of registers and caches, vectors, packed panels, workers.
//!
//! The files build on each other in this order:
//!
//! | where | what |
//! | --- | --- |
//! | `group.rs` | facts: which stages are tiled together, with what is known of them |
//! | `tiling.rs` | decisions about a group, as numbers and names |
//! | `knobs/` | one file per kind of decision: its parameters, values, start, rules |
//! | `rows/` | stages that are computed together, row by row: facts, decisions, steps |
//! | `blocks/` | products and the rows between them, and stencils, a block of rows at a time |
//! | `groups.rs`, `sketch.rs` | a program as groups, chains and blocks with parameters |
//! | `cost/`, `features.rs` | what a tiling costs |
//! | `work.rs` | what is enough work for several workers |
//! | `decode/`, `rank.rs` | a point as a schedule; the most promising points |
//! | `pipeline/` | states of the search over pipelines as schedules |
//! | `entry.rs`, `policy.rs` | what the rest of the crate asks: of a sketch, and of a goal |
//! | `rules/`, `register_tile.rs` | schedules by rules alone, without a model |

pub(crate) mod blocks;
pub(crate) mod cost;
pub(crate) mod decode;
mod entry;
pub(crate) mod features;
pub(crate) mod group;
pub(crate) mod groups;
pub(crate) mod knobs;
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
