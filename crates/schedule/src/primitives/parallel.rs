//! `parallel`: the iterations of a loop are shared by workers.
//!
//! ```text
//! C: parallel m
//! for m in 0..M { S(m); }     ->     parallel for m in 0..M { S(m); }
//! ```
//!
//! The loop must be spatial, must not make elements twice, and neither be in a parallel loop nor
//! hold one.

use std::fmt;

use super::Rule;
use super::find::{
    check_overlaps, expect_serial, find_loop, holds_scatter, loop_at, loop_at_mut, loops_on,
    refuse_window,
};
use crate::nest::{LoopKind, LoopNest, Role, for_each_loop};
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
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Parallel { target: words.name("the name of a loop")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_loop(nest, stage, &self.target)?;
        let l = loop_at(nest, &path)?;
        expect_serial(nest, l, "make")?;
        refuse_window(nest, stage, l, "parallel")?;
        let refuse = |why: String| {
            Refusal::new(format!("loop `{}` of `{stage}` cannot be parallel: {why}", self.target))
        };
        match l.role {
            Role::Spatial => {}
            Role::Reduce if holds_scatter(l) => {
                return Err(refuse(
                    "it goes over terms of a scatter, and workers would add to the same elements"
                        .into(),
                )
                .help(format!(
                    "give each iteration a copy of its own: `{stage}: privatize {}`",
                    self.target
                )));
            }
            Role::Reduce => {
                return Err(refuse(
                    "it is a reduction, and workers would add to the same elements".into(),
                )
                .help("make partial results with `rfactor` first, or parallelize a spatial loop"));
            }
            Role::Scan => {
                return Err(refuse(
                    "it is a recurrence, and workers would need each other's results".into(),
                )
                .help("parallelize another loop of the stage"));
            }
        }
        if l.overlaps {
            return Err(refuse(
                "its tail is shifted inwards, so two workers would make the same elements".into(),
            )
            .help("split it with the tail `guard` or `peel`"));
        }
        let mut other = loops_on(nest, &path).into_iter().find(|l| l.kind == LoopKind::Parallel);
        for_each_loop(&l.body, &mut |found| {
            if found.kind == LoopKind::Parallel {
                other = other.or(Some(found));
            }
        });
        if let Some(other) = other {
            return Err(refuse(format!("loop `{}` is already", nest.var_name(other.var)))
                .help("fuse the two loops before"));
        }
        loop_at_mut(nest, &path)?.kind = LoopKind::Parallel;
        check_overlaps(nest)
    }
}
