//! GPU scheduling: blocks and threads, register tiling, shared memory.
//!
//! The space contains the choices of FlexTensor (section 4.2) and of Tensor Comprehensions (section
//! 5.2), for every stage. Per spatial loop: blocks, virtual threads, threads and results per
//! thread. Per reduction loop: the terms staged at a time and the terms of a step. In addition:
//! which operands a block stages in shared memory, or whether threads share the sum of a result.
//!
//! | where | what |
//! | --- | --- |
//! | `group.rs`, `groups.rs` | groups of stages that are computed together, with their analysis |
//! | `tiling.rs` | the scheduling decisions of a group |
//! | `knobs/` | one file per kind of decision: its parameters, values, rules |
//! | `sketch.rs`, `entry.rs` | a program as groups with parameters; the implementation of `Sketch` |
//! | `decode/` | decoding of tilings to schedule steps |
//! | `cost.rs`, `rank.rs` | the analytical cost model; ranking of tilings |
//! | `lowering.rs` | lowering for GPUs, and its limits |
//! | `tensor/` | matrix products on tensor cores: parameters, rules, model |
//! | `rows/` | row-wise fusion into one launch |
//! | `pipeline/` | decoding of pipeline-search states to schedules |
//! | `rules.rs`, `policy.rs` | heuristic schedules without a model; the implementation of `Policy` |

mod cost;
mod decode;
mod entry;
mod group;
mod groups;
mod knobs;
mod lowering;
mod pipeline;
mod policy;
mod rank;
mod rows;
mod rules;
mod sketch;
mod tensor;
mod tiling;

pub(crate) use lowering::limits;
