//! Target-independent analyses and steps of stages.
//!
//! | where | what |
//! | --- | --- |
//! | `kinds.rs` | kinds of stages: data movement, recurrences, scatters |
//! | `only.rs` | the part of a nest that computes some stages |
//! | `operand.rs` | strides and footprints of operands |
//! | `split.rs` | loops with their legal splits |
//! | `rows.rs` | row-wise fusion |
//! | `sibling_fusion.rs` | sibling fusion |
//! | `ranks.rs` | conversion between ranks and values of parameters |
//! | `steps.rs` | common schedule steps |

pub(crate) mod kinds;
pub(crate) mod only;
pub(crate) mod operand;
pub(crate) mod ranks;
pub(crate) mod rows;
pub(crate) mod sibling_fusion;
pub(crate) mod split;
pub(crate) mod steps;
