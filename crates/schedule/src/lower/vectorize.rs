//! Turns vectorized loops into lanes of their stores.
//!
//! ```text
//! vectorized for n.1 in 0..16 {                 [n.1 = 0..16] C(m, n.1) += A(m, k) * B(k, n.1);
//!   C(m, n.1) += A(m, k) * B(k, n.1);      ->   [n.1 = 0..16] D(m, n.1) = C(m, n.1);
//!   D(m, n.1) = C(m, n.1);
//! }
//! ```
//!
//! Each statement runs for all lanes before the next statement. That is legal: the lanes of a
//! spatial loop are independent, and those of a reduction may be combined in any order. The lanes
//! of a recurrence read the elements of earlier lanes and are marked as [in
//! order](Lanes::in_order).

use tensorwright_lang::program::Index;

use super::LowerError;
use crate::nest::{Body, Lanes, Loop, LoopKind, LoopNest, Node, Role, Store, substitute};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    super::both(nest, vectorize)
}

fn vectorize(nest: &LoopNest, nodes: Body) -> Result<Body, LowerError> {
    let mut all = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Loop(l) if l.kind == LoopKind::Vectorized => all.extend(lanes(nest, l)?),
            Node::Loop(mut l) => {
                l.body = vectorize(nest, l.body)?;
                all.push(Node::Loop(l));
            }
            Node::Guard(mut guard) => {
                guard.body = vectorize(nest, guard.body)?;
                all.push(Node::Guard(guard));
            }
            other => all.push(other),
        }
    }
    Ok(all.into())
}

fn lanes(nest: &LoopNest, mut l: Loop) -> Result<Body, LowerError> {
    if l.extent == 1 {
        substitute(&mut l.body, l.var, &Index::constant(0)).ok_or(LowerError::Overflow)?;
        return vectorize(nest, l.body);
    }
    let lanes = Lanes { var: l.var, count: l.extent, in_order: l.role == Role::Scan };
    l.body
        .into_iter()
        .filter(|node| !matches!(node, Node::Prefetch(_)))
        .map(|node| match node {
            Node::Store(store) => Ok(Node::Store(widen(store, lanes))),
            Node::Loop(inner) => Err(LowerError::NotInnermost {
                vectorized: nest.var_name(l.var).to_owned(),
                inner: nest.var_name(inner.var).to_owned(),
            }),
            other => Ok(other),
        })
        .collect()
}

fn widen(mut store: Store, lanes: Lanes) -> Store {
    store.lanes = Some(lanes);
    let (mask, domain) = std::mem::take(&mut store.domain)
        .into_iter()
        .partition(|bound| bound.index.mentions(&|var| var == lanes.var));
    store.mask = bounds(mask);
    store.domain = domain;
    store
}

fn bounds(bounds: Vec<crate::nest::Bound>) -> Vec<Index> {
    bounds.into_iter().map(|bound| bound.index).collect()
}
