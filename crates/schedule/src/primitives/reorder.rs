//! `reorder`: reorders nested loops.
//!
//! ```text
//! C: reorder k m n
//! for m {                            for k {
//!   for n {                            for m {
//!     for k { C(m, n) += ...; }   ->     for n { C(m, n) += ...; }
//! ```
//!
//! The named loops exchange their positions in the given order; others stay. The loops from the
//! outermost to the innermost named one must be perfectly nested.

use std::fmt;

use super::find::{check_overlaps, find_loop, loop_at, loop_at_mut, loops_on};
use super::{Reach, Rule};
use crate::nest::{Loop, LoopNest, Node, Role};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Reorders loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reorder {
    /// The loops in their new order, outermost first.
    pub order: Vec<String>,
}

impl Reorder {
    /// A reordering.
    #[must_use]
    pub fn new<S: Into<String>>(order: impl IntoIterator<Item = S>) -> Self {
        Self { order: order.into_iter().map(Into::into).collect() }
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reorder {}", self.order.join(" "))
    }
}

impl Rule for Reorder {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let mut order = vec![words.name("the name of a loop")?];
        order.extend(words.names());
        Ok(Reorder { order })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let mut depths = Vec::new();
        let mut path = Vec::new();
        for name in &self.order {
            let found = find_loop(nest, stage, name)?;
            if depths.contains(&(found.len() - 1)) {
                return Err(Refusal::new(format!("loop `{name}` is named twice")));
            }
            depths.push(found.len() - 1);
            if found.len() > path.len() {
                path = found;
            }
        }
        let first = depths.iter().min().copied().unwrap_or(0);
        self.check_chain(stage, nest, &path, first)?;
        let shells: Vec<Loop> = loops_on(nest, &path).into_iter().map(Loop::shell).collect();
        let body = loop_at(nest, &path)?.body.clone();
        let locals = loop_at(nest, &path)?.locals.clone();
        // The named loops go, in their new order, to the positions of the named loops.
        let mut places = depths.clone();
        places.sort_unstable();
        let mut order: Vec<usize> = (0..shells.len()).collect();
        for (place, depth) in places.iter().zip(&depths) {
            order[*place] = *depth;
        }
        keeps_recurrence(stage, nest, &shells, &order)?;
        let chain = order[first..].iter().rev().fold(body, |body, depth| {
            let mut l = shells[*depth].clone();
            l.body = body;
            vec![Node::Loop(l)].into()
        });
        if let Some(Node::Loop(top)) = chain.into_iter().next() {
            *loop_at_mut(nest, &path[..=first])? = top;
        }
        // The buffers of the innermost position stay there.
        loop_at_mut(nest, &innermost(&path, first))?.locals = locals;
        check_overlaps(nest)
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { order: names.own_loops(&self.order)? })
    }
}

/// Refuses an order that swaps the parts of a recurrence loop: later elements would be computed
/// before earlier ones. Other loops may go anywhere, because elements only depend on those of their
/// own line.
fn keeps_recurrence(
    stage: &str,
    nest: &LoopNest,
    shells: &[Loop],
    order: &[usize],
) -> Result<(), Refusal> {
    let steps: Vec<usize> =
        order.iter().copied().filter(|depth| shells[*depth].role == Role::Scan).collect();
    for pair in steps.windows(2) {
        if let [outer, inner] = *pair
            && outer > inner
        {
            let name = |depth: usize| nest.var_name(shells[depth].var);
            return Err(Refusal::new(format!(
                "loop `{}` of `{stage}` cannot go outside of `{}`: both are loops of a recurrence, \
                 whose elements are computed in order",
                name(outer),
                name(inner)
            )));
        }
    }
    Ok(())
}

/// The path of the innermost position: below the first one every loop is the only node.
fn innermost(path: &[usize], first: usize) -> Vec<usize> {
    let mut inner = path.to_vec();
    inner[first + 1..].fill(0);
    inner
}

impl Reorder {
    fn check_chain(
        &self,
        stage: &str,
        nest: &LoopNest,
        path: &[usize],
        first: usize,
    ) -> Result<(), Refusal> {
        let chain = &loops_on(nest, path)[first..];
        for pair in chain.windows(2) {
            let [outer, inner] = pair else { continue };
            let name = nest.var_name(outer.var);
            if outer.body.len() != 1 || !outer.locals.is_empty() {
                return Err(Refusal::new(format!(
                    "cannot reorder across loop `{name}` of `{stage}`: it holds more than the next loop"
                ))
                .help("reorder before other stages are computed in it"));
            }
            if outer.stage != inner.stage {
                return Err(Refusal::new(format!(
                    "loops `{name}` and `{}` belong to different stages",
                    nest.var_name(inner.var)
                )));
            }
        }
        Ok(())
    }
}
