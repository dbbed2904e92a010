//! Rewrites index arithmetic so that 64 bits suffice.
//!
//! ```text
//! 3*I(m) < N ? X(3*I(m)) : 0      ->      I(m) <= (N - 1)/3 ? X(3*I(m)) : 0
//! ```
//!
//! Emitted arithmetic wraps around; [`Exact`] describes where that is harmless. No later pass may
//! change an index or a condition.

use tensorwright_lang::program::{Exact, Expr};

use super::LowerError;
use crate::nest::{LoopNest, Node, Ranges, Span, Var};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    super::both(nest, |nest, mut body| {
        nodes(nest, &mut body, &nest.ranges()).ok_or(LowerError::Overflow)?;
        Ok(body)
    })
}

fn nodes(nest: &LoopNest, nodes: &mut [Node], ranges: &Ranges) -> Option<()> {
    for node in nodes {
        if let Node::Loop(l) = node {
            self::nodes(nest, &mut l.body, &ranges.with(l.var, l.extent))?;
            if l.span.is_none() {
                continue;
            }
        }
        let mut inner = ranges.clone();
        if let Node::Store(store) = &*node
            && let Some(lanes) = store.lanes
        {
            inner.insert(lanes.var, lanes.count);
        }
        let axis = |var: Var| inner.of(var);
        let dtype = |id| nest.dtype(id);
        let extent = |id, dimension: u32| nest.buffer(id).shape.get(dimension as usize).copied();
        let exact = Exact::new(&axis, &dtype, &extent);
        match node {
            Node::Loop(l) => {
                if let Some(Span { begin, end }) = l.span.as_deref_mut() {
                    *begin = exact.index(begin)?;
                    *end = exact.index(end)?;
                }
            }
            Node::Barrier => {}
            Node::Guard(guard) => {
                for condition in &mut guard.conditions {
                    *condition = exact.condition(condition)?;
                }
                self::nodes(nest, &mut guard.body, ranges)?;
            }
            Node::Store(store) => {
                match store.checked_element().map(Expr::Read) {
                    // A read at that position would be checked in the same way.
                    Some(element) => {
                        let Expr::Read(read) = exact.expr(&element)? else { return None };
                        store.subscripts = read.subscripts;
                    }
                    None => {
                        for subscript in &mut store.subscripts {
                            *subscript = exact.index(subscript)?;
                        }
                    }
                }
                for condition in &mut store.mask {
                    *condition = exact.condition(condition)?;
                }
                if !exact.is_exact(&store.value) {
                    store.value = exact.expr(&store.value)?;
                }
            }
            Node::Prefetch(prefetch) => {
                for subscript in &mut prefetch.subscripts {
                    *subscript = exact.index(subscript)?;
                }
            }
        }
    }
    Some(())
}
