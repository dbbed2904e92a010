//! `vectorize`: a loop becomes the lanes of vectors.
//!
//! ```text
//! C: vectorize n.1
//! for n.1 in 0..16 { C(m, n.1) = A(m, n.1); }    ->    [n.1 = 0..16] C(m, n.1) = A(m, n.1);
//! ```
//!
//! The loop must have at most 64 iterations and hold no loops but unrolled ones. The lanes of a loop
//! of a reduction are combined into one element at every statement, which costs a few shuffles:
//! [`rfactor`](super::Rfactor) the loop to do that only once, at the end.

use std::fmt;

use super::Rule;
use super::find::{expect_serial, find_loop, holds_scatter, loop_at, loop_at_mut, refuse_window};
use crate::nest::{Loop, LoopKind, LoopNest, Role, for_each_loop, for_each_store};
use crate::refusal::Refusal;
use crate::words::Words;

/// The most iterations of a vectorized loop.
pub const MAX_LANES: i64 = 64;

/// Vectorizes a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vectorize {
    /// The loop.
    pub target: String,
}

impl fmt::Display for Vectorize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vectorize {}", self.target)
    }
}

/// Whether all iterations of a loop make the same element of a stage.
fn makes_one_element(l: &Loop) -> bool {
    let mut found = false;
    for_each_store(&l.body, &mut |store| {
        let moves = store.subscripts.iter().any(|at| at.mentions(&|var| var == l.var));
        found |= !moves;
    });
    found && l.extent > 1
}

impl Rule for Vectorize {
    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Vectorize { target: words.name("the name of a loop")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_loop(nest, stage, &self.target)?;
        let l = loop_at(nest, &path)?;
        expect_serial(nest, l, "vectorize")?;
        refuse_window(nest, stage, l, "vectorized")?;
        let target = &self.target;
        if l.role == Role::Scan {
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` cannot be vectorized: it is a recurrence, and lanes \
                 would need each other's results"
            ))
            .help("vectorize another loop of the stage"));
        }
        if l.role == Role::Reduce && holds_scatter(l) {
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` cannot be vectorized: it goes over terms of a scatter, and \
                 lanes would add to the same elements"
            ))
            .help("vectorize a loop over results"));
        }
        if l.role == Role::Spatial && makes_one_element(l) {
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` cannot be vectorized: iterations beyond a sliding window come back to its \
                 first elements"
            ))
            .help("split into fewer iterations, or vectorize another loop"));
        }
        if l.extent > MAX_LANES {
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` has {} iterations, more than {MAX_LANES} lanes",
                l.extent
            ))
            .help(format!("split it: `{stage}: split {target} 16`")));
        }
        let mut inner = None;
        let mut owner = (!l.locals.is_empty()).then_some(l);
        for_each_loop(&l.body, &mut |found| {
            if found.kind != LoopKind::Unrolled {
                inner = inner.or(Some(found));
            }
            if !found.locals.is_empty() {
                owner = owner.or(Some(found));
            }
        });
        if let Some(inner) = inner {
            let name = nest.var_name(inner.var);
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` holds the loop `{name}`"
            ))
            .help(format!("reorder `{target}` to be innermost, or unroll `{name}` first")));
        }
        if owner.is_some() {
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` holds buffers of its own, which lanes cannot share"
            )));
        }
        loop_at_mut(nest, &path)?.kind = LoopKind::Vectorized;
        Ok(())
    }
}
