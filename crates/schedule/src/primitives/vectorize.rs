//! `vectorize`: maps the iterations of a loop to vector lanes.
//!
//! ```text
//! C: vectorize n.1
//! for n.1 in 0..16 { C(m, n.1) = A(m, n.1); }    ->    [n.1 = 0..16] C(m, n.1) = A(m, n.1);
//! ```
//!
//! The loop must have at most 64 iterations and contain only unrolled loops. The lanes of a
//! reduction loop are combined into one element at every statement, which costs a few shuffles:
//! with [`rfactor`](super::Rfactor), this happens only once, at the end.
//!
//! The lanes of a recurrence depend on each other. If each element is the previous one combined
//! with a term by an associative operator, the lanes compute a parallel prefix sum:
//!
//! ```text
//! y: vectorize t.1
//! for t.0 {                                          for t.0 {
//!   for t.1 in 0..4 {                                  v = x(4*t.0 .. 4*t.0 + 4);
//!     y(4*t.0 + t.1) = y(4*t.0 + t.1 - 1)       ->     v = v + (0, v0, v1, v2);
//!                    + x(4*t.0 + t.1);                 v = v + (0, 0, v0, v1);
//!   }                                                  y(4*t.0 .. 4*t.0 + 4) = y(4*t.0 - 1) + v;
//! }                                                  }
//! ```

use std::fmt;

use tensorwright_lang::program::{Read, Running};

use super::find::{
    expect_serial, find_loop, holds_scatter, loop_at, loop_at_mut, refuse_sized, refuse_window,
    sums_of,
};
use super::{Reach, Rule};
use crate::nest::{
    Bound, Loop, LoopKind, LoopNest, Role, Store, Var, for_each_loop, for_each_store,
};
use crate::primitives::renaming::Renaming;
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

/// Whether all iterations of a loop update the same element of a stage.
fn makes_one_element(l: &Loop) -> bool {
    let mut found = false;
    for_each_store(&l.body, &mut |store| {
        let moves = store.subscripts.iter().any(|at| at.mentions(&|var| var == l.var));
        found |= !moves;
    });
    found && l.extent > 1
}

/// The reason why lanes cannot be steps of a recurrence.
fn out_of_order(nest: &LoopNest, l: &Loop) -> Option<String> {
    let mut why = None;
    for_each_loop(&l.body, &mut |inner| {
        if inner.role == Role::Scan && inner.extent > 1 {
            let name = nest.var_name(inner.var);
            why = Some(format!("the steps of loop `{name}` lie between those of its lanes"));
        }
    });
    for_each_store(&l.body, &mut |store| {
        let dtype = nest.dtype(store.buffer);
        let running = Running::of(&store.value, store.buffer);
        let found = match running.filter(|running| follows(store, running.read, l.var)) {
            Some(running) if running.is_associative(dtype) => None,
            Some(_) => Some(format!("sums and products of `{dtype}` are rounded at every step")),
            None => Some("lanes would need each other's results".to_owned()),
        };
        why = why.take().or(found);
    });
    why
}

/// Whether a store reads only the element that the previous iteration writes, and only its last
/// iterations may be masked off.
pub(super) fn follows(store: &Store, read: &Read, var: Var) -> bool {
    let is_var = |other: Var| other == var;
    let mut moved = 0;
    let mut steps = store.subscripts.iter().zip(&read.subscripts);
    let is_before = steps.all(|(written, read)| {
        let step = written.coefficient_of(var);
        moved += usize::from(step != Some(0));
        let back = written.sub(read).and_then(|back| back.as_constant());
        step.is_some_and(|step| step.abs() <= 1) && back == step
    });
    let ends = |bound: &Bound| {
        !bound.index.mentions(&is_var) || bound.index.coefficient_of(var).is_some_and(|by| by < 0)
    };
    is_before && moved == 1 && store.combine.is_none() && store.domain.iter().all(ends)
}

impl Rule for Vectorize {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Vectorize { target: words.name("the name of a loop")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_loop(nest, stage, &self.target)?;
        let l = loop_at(nest, &path)?;
        expect_serial(nest, l, "vectorize")?;
        refuse_sized(stage, &self.target, l, "vectorized")?;
        refuse_window(nest, stage, l, "vectorized")?;
        let target = &self.target;
        if l.role == Role::Scan
            && let Some(why) = out_of_order(nest, l)
        {
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` cannot be vectorized: it is a recurrence, and {why}"
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
        if !l.terms_of.is_empty() {
            return Err(Refusal::new(format!(
                "loop `{target}` of `{stage}` cannot be vectorized: it goes over terms of {} as well",
                sums_of(nest, l)
            ))
            .help("vectorize a loop inside of it"));
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

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)? })
    }
}
