//! `fuse`: fuses two nested loops into one.
//!
//! ```text
//! C: fuse m n -> mn                  for mn in 0..M*N {
//! for m in 0..M {               ->     S(mn / N, mn % N);
//!   for n in 0..N { S(m, n); }       }
//! ```
//!
//! The inner loop must be the whole body of the outer one, and both loops must have the same role.
//! Without a name the new loop is called `m_n`.

use std::fmt;

use tensorwright_lang::program::Index;

use super::find::{expect_fresh, expect_serial, find_loop, loop_at, loop_at_mut, refuse_sized};
use super::{Reach, Rule};
use crate::nest::{Loop, LoopNest, Node, substitute};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::{Words, without_marks};

/// Fuses two nested loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fuse {
    /// The outer loop.
    pub outer: String,
    /// The loop directly inside it.
    pub inner: String,
    /// The name of the new loop, if not the default.
    pub name: Option<String>,
}

impl fmt::Display for Fuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fuse {} {}", self.outer, self.inner)?;
        self.name.iter().try_for_each(|name| write!(f, " -> {name}"))
    }
}

impl Rule for Fuse {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let outer = words.name("the name of the outer loop")?;
        let inner = words.name("the name of the inner loop")?;
        let name =
            if words.accept("->") { Some(words.name("the name of the new loop")?) } else { None };
        Ok(Fuse { outer, inner, name })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let path = find_loop(nest, stage, &self.outer)?;
        find_loop(nest, stage, &self.inner)?;
        let outer = loop_at(nest, &path)?;
        let [Node::Loop(inner)] = outer.body.as_slice() else {
            return Err(self.refuse(stage, "holds more than one loop"));
        };
        if nest.var_name(inner.var) != without_marks(&self.inner).0 {
            return Err(self.refuse(stage, &format!("does not hold `{}` directly", self.inner)));
        }
        expect_serial(nest, outer, "fuse")?;
        expect_serial(nest, inner, "fuse")?;
        refuse_sized(stage, &self.inner, inner, "fused with the loop around it")?;
        let flagged = |l: &Loop| l.peel || l.overlaps || !l.locals.is_empty();
        let is_same = outer.stage == inner.stage && outer.terms_of == inner.terms_of;
        if outer.role != inner.role || !is_same {
            let why = format!(
                "and `{}` are not both spatial loops or both loops of one reduction or recurrence",
                self.inner
            );
            return Err(self.refuse(stage, &why));
        }
        if flagged(outer) || flagged(inner) {
            return Err(
                self.refuse(stage, "has a tail or buffers of its own that fusing would tear apart")
            );
        }
        let extent = outer.extent.checked_mul(inner.extent).ok_or_else(Refusal::overflow)?;
        let (old_outer, old_inner, width) = (outer.var, inner.var, inner.extent);
        let name = self.name.clone().unwrap_or_else(|| self.loop_name());
        expect_fresh(nest, stage, std::slice::from_ref(&name))?;
        let var = nest.add_var(name);
        let quotient = Index::axis(var).div(width).ok_or_else(Refusal::overflow)?;
        let remainder = Index::axis(var).rem(width);
        let outer = loop_at_mut(nest, &path)?;
        let Some(Node::Loop(inner)) = outer.body.pop() else { return Ok(()) };
        outer.body = inner.body;
        outer.var = var;
        outer.extent = extent;
        substitute(&mut outer.body, old_outer, &quotient).ok_or_else(Refusal::overflow)?;
        substitute(&mut outer.body, old_inner, &remainder).ok_or_else(Refusal::overflow)
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        let (outer, inner) = (names.own_loop(&self.outer)?, names.own_loop(&self.inner)?);
        let usual = Self { outer, inner, name: None };
        let wanted = match &self.name {
            Some(name) => Renaming::derived(std::slice::from_ref(name), &self.outer, &usual.outer),
            None => vec![usual.loop_name()],
        };
        let free = names.new_loops(wanted)?.pop();
        let is_usual = self.name.is_none() && free == Some(usual.loop_name());
        Ok(if is_usual { usual } else { Self { name: free, ..usual } })
    }
}

impl Fuse {
    /// The default name of the new loop.
    fn loop_name(&self) -> String {
        format!("{}_{}", without_marks(&self.outer).0, without_marks(&self.inner).0)
    }

    fn refuse(&self, stage: &str, why: &str) -> Refusal {
        Refusal::new(format!("cannot fuse: loop `{}` of `{stage}` {why}", self.outer))
    }
}
