//! Removes redundant bounds, shortens loops, and peels tails.
//!
//! ```text
//! for m.0 in 0..85 peeled {                       for m.0 in 0..84 {
//!   for m.1 in 0..6 {                               for m.1 in 0..6 { S(6*m.0 + m.1); }
//!     if (6*m.0 + m.1 <= 508) S(6*m.0 + m.1);  ->  }
//!                                                  for m.1 in 0..5 { S(504 + m.1); }
//! ```

use tensorwright_lang::program::{Atom, Index, Term};

use super::LowerError;
use crate::limits::most_tails;
use crate::nest::{Body, Loop, LoopKind, LoopNest, Node, Ranges, Var, for_each_store, substitute};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let mut left = most_tails(nest);
    super::both(nest, |nest, nodes| peel(nodes, &nest.ranges(), &mut left))
}

/// Peels loops while `left` copies remain: nested tails double the code each time.
fn peel(nodes: Body, ranges: &Ranges, left: &mut usize) -> Result<Body, LowerError> {
    let mut all = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Loop(mut l) => {
                let peels = std::mem::take(&mut l.peel) && l.extent > 1 && is_cut(&l, ranges);
                if peels {
                    *left = left.checked_sub(1).ok_or(LowerError::TooManyTails)?;
                    let last = last_iteration(&mut l)?;
                    all.extend(settle(l, ranges, left)?);
                    all.extend(settle(last, ranges, left)?);
                } else {
                    all.extend(settle(l, ranges, left)?);
                }
            }
            Node::Guard(mut guard) => {
                guard.body = peel(guard.body, ranges, left)?;
                all.push(Node::Guard(guard));
            }
            Node::Store(mut store) => {
                store.domain.retain(|bound| !ranges.always(&bound.index));
                if !store.domain.iter().any(|bound| ranges.never(&bound.index)) {
                    all.push(Node::Store(store));
                }
            }
            other @ (Node::Prefetch(_) | Node::Barrier) => all.push(other),
        }
    }
    Ok(all.into())
}

/// A loop with its tail resolved: without iterations that do nothing.
fn settle(mut l: Loop, ranges: &Ranges, left: &mut usize) -> Result<Option<Node>, LowerError> {
    if l.kind != LoopKind::Vectorized
        && let Some(limit) = limit(&l)
    {
        l.extent = l.extent.min(limit);
    }
    if l.extent <= 0 {
        return Ok(None);
    }
    l.body = peel(std::mem::take(&mut l.body), &ranges.with(l.var, l.extent), left)?;
    Ok((!l.body.is_empty()).then_some(Node::Loop(l)))
}

/// Whether a bound of a store below depends on the loop and does not always hold.
fn is_cut(l: &Loop, ranges: &Ranges) -> bool {
    fn cut(nodes: &[Node], var: Var, ranges: &Ranges) -> bool {
        nodes.iter().any(|node| match node {
            Node::Loop(l) => cut(&l.body, var, &ranges.with(l.var, l.extent)),
            Node::Guard(guard) => cut(&guard.body, var, ranges),
            Node::Store(store) => store.domain.iter().any(|bound| {
                bound.index.mentions(&|other| other == var) && !ranges.always(&bound.index)
            }),
            Node::Prefetch(_) | Node::Barrier => false,
        })
    }
    cut(&l.body, l.var, &ranges.with(l.var, l.extent))
}

/// Splits the last iteration off a loop, as a loop of one iteration.
fn last_iteration(l: &mut Loop) -> Result<Loop, LowerError> {
    l.extent -= 1;
    let mut last = l.clone();
    last.extent = 1;
    last.kind = LoopKind::Serial;
    substitute(&mut last.body, l.var, &Index::constant(l.extent)).ok_or(LowerError::Overflow)?;
    Ok(last)
}

/// The number of iterations after which all stores below are masked off, judging by bounds that
/// depend on the loop alone.
fn limit(l: &Loop) -> Option<i64> {
    let mut most = Some(0);
    for_each_store(&l.body, &mut |store| {
        let own = store.domain.iter().filter_map(|bound| match bound.index.terms() {
            [Term { atom: Atom::Axis(var), coefficient }] if *var == l.var && *coefficient < 0 => {
                // c - a*v >= 0 for v up to c / a.
                Some(bound.index.constant_term().div_euclid(-coefficient) + 1)
            }
            _ => None,
        });
        most = most.zip(own.min()).map(|(most, own)| most.max(own));
    });
    most
}
