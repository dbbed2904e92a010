//! `unroll`: unrolls a loop completely.
//!
//! ```text
//! C: unroll m
//! for m in 0..3 { S(m); }     ->     S(0); S(1); S(2);
//! ```
//!
//! The step only marks the loop; lowering unrolls it. Accumulators with constant subscripts after
//! unrolling live in registers.

use std::fmt;

use super::find::{expect_serial, find_loop, loop_at, loop_at_mut, refuse_sized};
use super::{Reach, Rule};
use crate::limits::MAX_STORES;
use crate::nest::{LoopKind, LoopNest};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Unrolls a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unroll {
    /// The loop.
    pub target: String,
}

impl fmt::Display for Unroll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unroll {}", self.target)
    }
}

impl Rule for Unroll {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Unroll { target: words.name("the name of a loop")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_loop(nest, stage, &self.target)?;
        let l = loop_at(nest, &path)?;
        expect_serial(nest, l, "unroll")?;
        refuse_sized(stage, &self.target, l, "unrolled")?;
        if l.extent > MAX_STORES as i64 {
            return Err(Refusal::new(format!(
                "loop `{}` of `{stage}` has {} iterations, too many to write out",
                self.target, l.extent
            ))
            .help("split it and unroll the inner loop"));
        }
        loop_at_mut(nest, &path)?.kind = LoopKind::Unrolled;
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)? })
    }
}
