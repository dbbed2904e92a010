//! Simplifies index arithmetic and conditions, and removes loops of one iteration.

use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::program::Index;

use super::LowerError;
use crate::nest::{
    Body, BufferId, Loop, LoopKind, LoopNest, Node, Ranges, Simplify, rewrite_store, substitute,
};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    super::both(nest, |nest, mut body| {
        let mut orphans = Vec::new();
        body = drop_units(body, &mut orphans)?;
        nodes(&mut body, &nest.ranges())?;
        Ok(body)
    })
}

/// Simplifies all expressions.
pub(super) fn nodes(nodes: &mut [Node], ranges: &Ranges) -> Result<(), LowerError> {
    for node in nodes {
        match node {
            Node::Loop(l) => self::nodes(&mut l.body, &ranges.with(l.var, l.extent))?,
            Node::Guard(guard) => {
                for condition in &mut guard.conditions {
                    *condition = ranges.simplify(condition).ok_or(LowerError::Overflow)?;
                }
                self::nodes(&mut guard.body, ranges)?;
            }
            Node::Store(store) => {
                let mut inner = ranges.clone();
                if let Some(lanes) = store.lanes {
                    inner.insert(lanes.var, lanes.count);
                }
                rewrite_store(store, &mut Simplify(&inner)).ok_or(LowerError::Overflow)?;
            }
            Node::Barrier => {}
            Node::Prefetch(prefetch) => {
                for subscript in &mut prefetch.subscripts {
                    *subscript = ranges.simplify(subscript).ok_or(LowerError::Overflow)?;
                }
            }
        }
    }
    Ok(())
}

/// A comparison as a difference of its operands: at least zero where the comparison holds or, if
/// the second value is `false`, where it does not. `None` for equalities, and on overflow.
pub(super) fn margin(op: CompareOp, a: &Index, b: &Index) -> Option<(Index, bool)> {
    let (margin, holds) = match op {
        CompareOp::Le => (b.sub(a)?, true),
        CompareOp::Gt => (b.sub(a)?, false),
        CompareOp::Ge => (a.sub(b)?, true),
        CompareOp::Lt => (a.sub(b)?, false),
        CompareOp::Eq | CompareOp::Ne => return None,
    };
    Some((margin, holds))
}

/// Replaces loops of one iteration by their bodies. Their locals move to the enclosing loop, or to
/// `orphans`, which live for the whole call.
fn drop_units(nodes: Body, orphans: &mut Vec<BufferId>) -> Result<Body, LowerError> {
    let mut kept = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Loop(mut l) => {
                let mut inner = Vec::new();
                l.body = drop_units(l.body, &mut inner)?;
                l.adopt(inner);
                if l.extent == 1 && matches!(l.kind, LoopKind::Serial | LoopKind::Parallel) {
                    orphans.append(&mut l.locals);
                    kept.extend(unit(l)?);
                } else {
                    kept.push(Node::Loop(l));
                }
            }
            Node::Guard(mut guard) => {
                guard.body = drop_units(guard.body, orphans)?;
                kept.push(Node::Guard(guard));
            }
            other => kept.push(other),
        }
    }
    Ok(kept.into())
}

fn unit(mut l: Loop) -> Result<Body, LowerError> {
    substitute(&mut l.body, l.var, &Index::constant(0)).ok_or(LowerError::Overflow)?;
    Ok(l.body)
}
