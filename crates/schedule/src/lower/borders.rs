//! Loop partitioning: splits off iterations in which clamped subscripts clamp.
//!
//! ```text
//! for x.0 in 0..96 {                                       [x.1] b(x.1) = a(max(x.1 - 1, 0));
//!   [x.1] b(16*x.0 + x.1) = a(max(16*x.0 + x.1 - 1, 0));   for x.0 in 0..95 {
//! }                                                   ->     [x.1] b(16*x.0 + x.1 + 16) = a(16*x.0 + x.1 + 15);
//!                                                          }
//! ```
//!
//! The lanes of a clamped subscript may be anywhere, so each is loaded separately. Between the
//! borders they are contiguous. Halide calls this loop partitioning. It only affects speed: loops
//! that would become too much code stay unchanged.

use tensorwright_lang::program::{Atom, Index, Rewrite};

use super::{LowerError, simplify};
use crate::nest::{
    Body, Loop, LoopKind, LoopNest, Node, Ranges, Store, Var, for_each_store, substitute,
};

/// The most stores that copies of loops may add to a nest.
const MOST_COPIES: usize = 512;

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let mut left = MOST_COPIES;
    super::both(nest, |nest, body| nodes(body, &nest.ranges(), &mut left))?;
    // Borders of one iteration need no loop.
    if left < MOST_COPIES { simplify::run(nest) } else { Ok(()) }
}

fn nodes(nodes: Body, ranges: &Ranges, left: &mut usize) -> Result<Body, LowerError> {
    let mut all = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Loop(l) => {
                for mut part in parts(l, ranges, left)? {
                    let inner = ranges.with(part.var, part.extent);
                    part.body = self::nodes(part.body, &inner, left)?;
                    all.push(Node::Loop(part));
                }
            }
            Node::Guard(mut guard) => {
                guard.body = self::nodes(guard.body, ranges, left)?;
                all.push(Node::Guard(guard));
            }
            other => all.push(other),
        }
    }
    Ok(all.into())
}

/// The loop unchanged, or the iterations before, between and after the borders.
fn parts(l: Loop, ranges: &Ranges, left: &mut usize) -> Result<Vec<Loop>, LowerError> {
    let mut stores = 0;
    for_each_store(&l.body, &mut |_| stores += 1);
    // Every split copies the loop at least once.
    let span = if stores > *left { None } else { interior(&l, ranges) };
    let Some((first, end)) = span else { return Ok(vec![l]) };
    let spans = [(0, first), (first, end), (end, l.extent)];
    let spans: Vec<(i64, i64)> = spans.into_iter().filter(|(first, end)| first < end).collect();
    let Some(rest) = left.checked_sub(stores * (spans.len() - 1)) else { return Ok(vec![l]) };
    *left = rest;
    let part = |(first, end): (i64, i64)| {
        let mut part = Loop { extent: end - first, ..l.clone() };
        let begun = moved(&Index::axis(l.var), l.var, first).ok_or(LowerError::Overflow)?;
        substitute(&mut part.body, l.var, &begun).ok_or(LowerError::Overflow)?;
        simplify::nodes(&mut part.body, &ranges.with(part.var, part.extent))?;
        Ok(part)
    };
    spans.into_iter().map(part).collect()
}

/// The range of iterations between the borders, if they are most of the loop.
fn interior(l: &Loop, ranges: &Ranges) -> Option<(i64, i64)> {
    if l.kind != LoopKind::Serial || l.extent < 2 {
        return None;
    }
    let mut clamped = Vec::new();
    collect(&l.body, l.var, ranges, &mut clamped);
    let middle = l.extent / 2;
    clamped.retain(|access| access.is_regular(l.var, middle, 1));
    if clamped.is_empty() {
        return None;
    }
    let all = |first: i64, count: i64| {
        clamped.iter().all(|access| access.is_regular(l.var, first, count))
    };
    // If a clamp acts in an iteration, it acts in all iterations further from the middle.
    let first = boundary(0, middle, |iteration| all(iteration, 1));
    let behind = boundary(0, l.extent - 1 - middle, |behind| all(l.extent - 1 - behind, 1));
    let end = l.extent - behind;
    let count = end - first;
    (count < l.extent && 2 * count >= l.extent && all(first, count)).then_some((first, end))
}

/// The least number up to `most` from which `holds` is true; it is true for `most`.
pub(super) fn boundary(mut least: i64, mut most: i64, holds: impl Fn(i64) -> bool) -> i64 {
    while least < most {
        let middle = least + (most - least) / 2;
        if holds(middle) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    most
}

/// A clamped subscript of a vector store, with the enclosing loops.
struct Clamped {
    subscript: Index,
    lane: Var,
    ranges: Ranges,
}

impl Clamped {
    /// Whether every clamp of the lanes is decided in `count` iterations of a loop.
    fn is_regular(&self, var: Var, first: i64, count: i64) -> bool {
        let moved = moved(&self.subscript, var, first);
        let simple = moved.and_then(|moved| self.ranges.with(var, count).simplify(&moved));
        simple.is_some_and(|simple| !clamps(&simple, self.lane))
    }
}

/// The clamped subscripts of vector stores that depend on a loop.
fn collect(nodes: &[Node], var: Var, ranges: &Ranges, found: &mut Vec<Clamped>) {
    for node in nodes {
        match node {
            Node::Loop(l) => collect(&l.body, var, &ranges.with(l.var, l.extent), found),
            Node::Guard(guard) => collect(&guard.body, var, ranges, found),
            Node::Store(store) => found.extend(of_store(store, var, ranges)),
            Node::Prefetch(_) | Node::Barrier => {}
        }
    }
}

fn of_store(store: &Store, var: Var, ranges: &Ranges) -> Vec<Clamped> {
    let Some(lanes) = store.lanes else { return Vec::new() };
    let ranges = ranges.with(lanes.var, lanes.count);
    let reads = store.reads();
    let of_reads = reads.iter().flat_map(|(_, read)| &read.subscripts);
    let could = |subscript: &&Index| {
        // A subscript that depends on data may be anywhere.
        clamps(subscript, lanes.var)
            && subscript.mentions(&|other| other == var)
            && subscript.outermost_values().is_empty()
    };
    let clamped = store.subscripts.iter().chain(of_reads).filter(could);
    clamped
        .map(|subscript| Clamped {
            subscript: subscript.clone(),
            lane: lanes.var,
            ranges: ranges.clone(),
        })
        .collect()
}

/// Whether a minimum or maximum in an index depends on a variable.
fn clamps(index: &Index, lane: Var) -> bool {
    let is_lane = |var: Var| var == lane;
    index.terms().iter().any(|term| match &term.atom {
        Atom::Min(a, b) | Atom::Max(a, b) => a.mentions(&is_lane) || b.mentions(&is_lane),
        Atom::Div(inner, _) | Atom::Mod(inner, _) | Atom::Product(inner, _) => clamps(inner, lane),
        Atom::Axis(_) | Atom::Value(_) => false,
    })
}

/// An index of a loop that begins `by` iterations later; `None` on overflow.
pub(super) fn moved(index: &Index, var: Var, by: i64) -> Option<Index> {
    struct Move(Var, i64);
    impl Rewrite for Move {
        fn axis(&mut self, axis: Var) -> Option<Index> {
            let by = if axis == self.0 { self.1 } else { 0 };
            Index::axis(axis).add(&Index::constant(by))
        }
    }
    index.rewrite(&mut Move(var, by))
}
