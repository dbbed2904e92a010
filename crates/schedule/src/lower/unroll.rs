//! Unrolls the loops that are marked as unrolled.

use tensorwright_lang::program::Index;

use super::LowerError;
use crate::limits::most_stores;
use crate::nest::{Body, BufferId, LoopKind, LoopNest, Node, substitute};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    super::both(nest, |nest, nodes| {
        if stores(&nodes) > most_stores(nest) as u128 {
            return Err(LowerError::TooLarge);
        }
        let mut orphans = Vec::new();
        unroll(nodes, &mut orphans)
    })
}

/// The number of stores after unrolling.
pub(super) fn stores(nodes: &[Node]) -> u128 {
    let one = |node: &Node| match node {
        Node::Loop(l) => {
            let copies = if l.kind == LoopKind::Unrolled { l.extent as u128 } else { 1 };
            copies.saturating_mul(stores(&l.body))
        }
        Node::Guard(guard) => stores(&guard.body),
        Node::Store(_) | Node::Prefetch(_) | Node::Barrier => 1,
    };
    nodes.iter().map(one).fold(0, u128::saturating_add)
}

/// Unrolls loops. The locals of unrolled loops move to the enclosing loop, or to `orphans`, which
/// live for the whole call: iterations do not overlap in time, so one copy is enough.
fn unroll(nodes: Body, orphans: &mut Vec<BufferId>) -> Result<Body, LowerError> {
    let mut all = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Loop(mut l) => {
                let mut inner = Vec::new();
                l.body = unroll(l.body, &mut inner)?;
                l.adopt(inner);
                if l.kind != LoopKind::Unrolled {
                    all.push(Node::Loop(l));
                    continue;
                }
                orphans.append(&mut l.locals);
                for iteration in 0..l.extent {
                    let mut copy = l.body.clone();
                    substitute(&mut copy, l.var, &Index::constant(iteration))
                        .ok_or(LowerError::Overflow)?;
                    all.extend(copy);
                }
            }
            Node::Guard(mut guard) => {
                guard.body = unroll(guard.body, orphans)?;
                all.push(Node::Guard(guard));
            }
            other => all.push(other),
        }
    }
    Ok(all.into())
}
