//! What is known of the stages of a program and done with them, whatever it is scheduled for.
//!
//! | where | what |
//! | --- | --- |
//! | `kinds.rs` | what kind of stage a stage is |
//! | `operand.rs` | how operands move with loops, and what of them loops touch |
//! | `split.rs` | loops, and how they may be split |
//! | `rows.rs` | which stages go over the same rows |
//! | `sibling_fusion.rs` | which stages share row loops without one being computed for the other |
//! | `ranks.rs` | from the ranks of parameters to values and back |
//! | `steps.rs` | steps that schedules of all targets are made of |

pub(crate) mod kinds;
pub(crate) mod operand;
pub(crate) mod ranks;
pub(crate) mod rows;
pub(crate) mod sibling_fusion;
pub(crate) mod split;
pub(crate) mod steps;
