//! Policy for graphics processors: loops as blocks and threads, tiles in registers, operands in shared memory.
//!
//! The space has the choices of FlexTensor (section 4.2) and of Tensor Comprehensions (section 5.2), for every stage: per loop
//! over results blocks, virtual threads, threads and what a thread does; per loop over terms what is staged at a time and what is
//! added up from there; which operands the threads of a block stage in shared memory; or whether threads share the
//! sum of a result.
//!
//! | where | what |
//! | --- | --- |
//! | `group.rs`, `groups.rs` | facts: which stages are computed together, and what is known of them |
//! | `tiling.rs` | decisions about a group, as numbers and names |
//! | `knobs/` | one file per kind of decision: its parameters, values, rules |
//! | `sketch.rs`, `entry.rs` | a program as groups with parameters; what the rest of the crate asks of it |
//! | `decode/` | tilings as steps of a schedule |
//! | `cost.rs`, `rank.rs` | what a tiling costs; the most promising ones |
//! | `lowering.rs` | what can be lowered for a device |
//! | `tensor/` | products of matrices on tensor cores: parameters, rules, model |
//! | `rows/` | stages that go over the same rows, as one launch |
//! | `pipeline/` | states of the search over pipelines as schedules |
//! | `rules.rs`, `policy.rs` | schedules by rules alone; what the rest of the crate asks of a goal |

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
