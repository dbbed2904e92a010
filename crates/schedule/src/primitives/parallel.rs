//! `parallel`: distributes the iterations of a loop over workers.
//!
//! ```text
//! C: parallel m
//! for m in 0..M { S(m); }     ->     parallel for m in 0..M { S(m); }
//! ```
//!
//! The loop must be spatial, must not compute elements twice, and must neither be inside a parallel
//! loop nor contain one.

use std::fmt;

use super::find::{check_overlaps, expect_serial, find_loop, loop_at, loop_at_mut, loops_on};
use super::independent::IterationMode;
use super::{Reach, Rule};
use crate::nest::{LoopKind, LoopNest, for_each_loop};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Makes a loop parallel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parallel {
    /// The loop.
    pub target: String,
}

impl fmt::Display for Parallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parallel {}", self.target)
    }
}

impl Rule for Parallel {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Parallel { target: words.name("the name of a loop")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_loop(nest, stage, &self.target)?;
        let l = loop_at(nest, &path)?;
        expect_serial(nest, l, "make")?;
        let (state, tails) = ("parallel".to_owned(), "`guard` or `peel`");
        let mode = IterationMode { state, who: "workers", verb: "parallelize", tails };
        mode.expect_independent(nest, stage, l)?;
        let mut other = loops_on(nest, &path).into_iter().find(|l| l.kind == LoopKind::Parallel);
        for_each_loop(&l.body, &mut |found| {
            if found.kind == LoopKind::Parallel {
                other = other.or(Some(found));
            }
        });
        if let Some(other) = other {
            let why = format!("loop `{}` is already", nest.var_name(other.var));
            return Err(mode.refuse(nest, stage, l, &why).help("fuse the two loops before"));
        }
        loop_at_mut(nest, &path)?.kind = LoopKind::Parallel;
        check_overlaps(nest)
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)? })
    }
}
