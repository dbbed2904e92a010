//! Turns the remaining bounds into guards and hoists them.
//!
//! ```text
//! for n {                                      if (m <= 508) {
//!   if (m <= 508) C(m, n) = ...;        ->       for n { C(m, n) = ...; }
//! }                                            }
//! ```

use tensorwright_lang::program::{Atom, Index, Term};

use super::LowerError;
use crate::nest::{Body, Guard, Lanes, LoopNest, Node, Ranges};

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    super::both(nest, |nest, nodes| Ok(wrap_all(lift(nodes, &nest.ranges()))))
}

/// A node and the conditions under which it runs.
struct Guarded {
    conditions: Vec<Index>,
    node: Node,
}

fn lift(nodes: Body, ranges: &Ranges) -> Vec<Guarded> {
    nodes.into_iter().filter_map(|node| lift_one(node, ranges)).collect()
}

/// Removes the conditions of a node that can be hoisted out of it; `None` if it never runs.
fn lift_one(node: Node, ranges: &Ranges) -> Option<Guarded> {
    match node {
        Node::Store(mut store) => {
            let bounds = std::mem::take(&mut store.domain).into_iter().map(|bound| bound.index);
            let mut conditions: Vec<Index> = bounds.filter(|bound| !ranges.always(bound)).collect();
            if conditions.iter().any(|bound| ranges.never(bound)) {
                return None;
            }
            conditions.sort();
            conditions.dedup();
            if let Some(lanes) = &mut store.lanes {
                lanes.count = active(*lanes, &store.mask);
                let inner = ranges.with(lanes.var, lanes.count);
                store.mask.retain(|bound| !inner.always(bound));
                if store.mask.iter().any(|bound| inner.never(bound)) {
                    return None;
                }
            }
            Some(Guarded { conditions, node: Node::Store(store) })
        }
        Node::Loop(mut l) => {
            let body = lift(std::mem::take(&mut l.body), &ranges.with(l.var, l.extent));
            let (outside, body) =
                split(body, &|condition| !condition.mentions(&|var| var == l.var));
            l.body = wrap_all(body);
            (!l.body.is_empty()).then_some(Guarded { conditions: outside, node: Node::Loop(l) })
        }
        Node::Guard(mut guard) => {
            guard.body = wrap_all(lift(guard.body, ranges));
            Some(Guarded { conditions: Vec::new(), node: Node::Guard(guard) })
        }
        other @ (Node::Prefetch(_) | Node::Barrier) => {
            Some(Guarded { conditions: Vec::new(), node: other })
        }
    }
}

/// The lanes of the narrowest vector that still has all active lanes: the least power of two for a
/// bound that depends on the lane alone.
fn active(lanes: Lanes, mask: &[Index]) -> i64 {
    let limit = |bound: &Index| match bound.terms() {
        [Term { atom: Atom::Axis(var), coefficient }] if *var == lanes.var && *coefficient < 0 => {
            Some(bound.constant_term().div_euclid(-coefficient) + 1)
        }
        _ => None,
    };
    let fewest = mask.iter().filter_map(limit).min().unwrap_or(lanes.count);
    let power = (fewest.max(1) as u64).next_power_of_two() as i64;
    power.min(lanes.count)
}

/// Removes the conditions that all nodes share and that may be hoisted.
fn split(mut body: Vec<Guarded>, may_move: &impl Fn(&Index) -> bool) -> (Vec<Index>, Vec<Guarded>) {
    let Some(first) = body.first() else { return (Vec::new(), body) };
    let mut shared = first.conditions.clone();
    shared.retain(may_move);
    for guarded in &body[1..] {
        shared.retain(|condition| guarded.conditions.contains(condition));
    }
    for guarded in &mut body {
        guarded.conditions.retain(|condition| !shared.contains(condition));
    }
    (shared, body)
}

/// Puts consecutive nodes with the same conditions under one guard.
fn wrap_all(guarded: Vec<Guarded>) -> Body {
    let mut nodes = Vec::with_capacity(guarded.len());
    let mut open: Option<Guard> = None;
    for Guarded { conditions, node } in guarded {
        if let Some(guard) = &mut open
            && guard.conditions == conditions
        {
            guard.body.push(node);
            continue;
        }
        nodes.extend(open.take().map(Node::Guard));
        if conditions.is_empty() {
            nodes.push(node);
        } else {
            open = Some(Guard { conditions, body: vec![node].into() });
        }
    }
    nodes.extend(open.map(Node::Guard));
    nodes.into()
}
