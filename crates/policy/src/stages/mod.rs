//! What is known of the stages of a program, whatever it is scheduled for.
//!
//! | where | what |
//! | --- | --- |
//! | `kinds.rs` | what kind of stage a stage is |
//! | `operand.rs` | how operands move with loops, and what of them loops touch |
//! | `split.rs` | loops, and how they may be split |

pub(crate) mod kinds;
pub(crate) mod operand;
pub(crate) mod split;
