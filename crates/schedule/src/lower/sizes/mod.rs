//! Ends loops where sizes say, and splits them where conditions on sizes begin to act.
//!
//! ```text
//! for x.0 in 0..256 {                                    for x.0 in 0..N/16 {
//!   [x.1] if (16*x.0 + x.1 <= N - 1) y(..) = ..;           [x.1] y(..) = ..;
//! }                                                  ->  }
//!                                                        for x.0 in N/16..(N + 15)/16 {
//!                                                          [x.1] if (..) y(..) = ..;
//!                                                        }
//! ```
//!
//! A loop ends after the last iteration in which some statement runs. It is split by conditions
//! that depend on its variable and on no sized loop inside of it: masks of lanes, clamps,
//! selections by position, and conditions that only some of its statements have. The iterations of
//! a parallel loop choose between two bodies instead, because splitting it would leave workers
//! idle. Splits only affect speed: a loop that would become too much code stays whole.

mod condition;
mod facts;
mod rows;

use tensorwright_lang::program::{Atom, Index};

use super::{LowerError, simplify};
use crate::nest::{
    Body, Guard, Loop, LoopKind, LoopNest, Node, Ranges, Span, for_each_store, rewrite_nodes,
};
use condition::{Limit, Statements};
use facts::Facts;
use rows::Rows;

/// The most stores that copies of loops may add to a nest.
const MOST_COPIES: usize = 512;

/// The fewest iterations of a loop of fixed extent that is split.
const SHORTEST: i64 = 16;

/// The most different limits of one loop.
const MOST_LIMITS: usize = 4;

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let mut pass = Pass { left: MOST_COPIES };
    super::both(nest, |nest, body| pass.nodes(body, &nest.ranges()))?;
    let mut rows = Rows::new();
    super::both(nest, |nest, body| rows.nodes(body, &nest.ranges()))
}

struct Pass {
    /// The stores that copies may still add.
    left: usize,
}

impl Pass {
    fn nodes(&mut self, nodes: Body, ranges: &Ranges) -> Result<Body, LowerError> {
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Loop(l) => all.extend(self.a_loop(l, ranges)?),
                Node::Guard(mut guard) => {
                    guard.body = self.nodes(guard.body, ranges)?;
                    all.push(Node::Guard(guard));
                }
                other => all.push(other),
            }
        }
        Ok(all.into())
    }

    /// A loop with its end, in parts.
    fn a_loop(&mut self, mut l: Loop, ranges: &Ranges) -> Result<Vec<Node>, LowerError> {
        let inner = ranges.with(l.var, l.extent);
        if !matches!(l.kind, LoopKind::Serial | LoopKind::Parallel) {
            l.body = self.nodes(l.body, &inner)?;
            return Ok(vec![Node::Loop(l)]);
        }
        let statements = Statements::of(&l, ranges);
        if !statements.are_sized() {
            l.body = self.nodes(l.body, &inner)?;
            return Ok(vec![Node::Loop(l)]);
        }
        let zero = Index::constant(0);
        let end = statements.end(&l).ok_or(LowerError::Overflow)?;
        // What holds until the end always holds.
        let (always, mut limits): (Vec<Limit>, Vec<Limit>) = statements
            .limits()
            .into_iter()
            .partition(|limit| !limit.is_first && never_above(&end, &limit.at, ranges));
        let always = always.into_iter().map(|limit| limit.condition).collect();
        Facts::new(always).assume(&mut l.body, &inner)?;
        limits.retain(|limit| limit.splits && (l.is_sized || l.extent >= SHORTEST));
        let Some(parts) = self.parts(&l, &limits, (&zero, &end), ranges) else {
            l.body = self.nodes(l.body, &inner)?;
            return Ok(spanned(l, zero, end, ranges)?.into_iter().collect());
        };
        let known = limits.into_iter().map(|limit| limit.condition).collect();
        let mut main = l.clone();
        Facts::new(known).assume(&mut main.body, &inner)?;
        main.body = self.nodes(main.body, &inner)?;
        l.body = self.nodes(l.body, &inner)?;
        let Parts { first, last } = parts;
        if l.kind == LoopKind::Parallel {
            return chosen(l, main, (&first, &last), end, ranges);
        }
        let head = spanned(l.clone(), zero, first.clone(), ranges)?;
        let middle = spanned(main, first, last.clone(), ranges)?;
        let tail = spanned(l, last, end, ranges)?;
        Ok(head.into_iter().chain(middle).chain(tail).collect())
    }

    /// The iterations in which all conditions hold; `None` if there is nothing to split, or if the
    /// copies would be too much code.
    fn parts(
        &mut self,
        l: &Loop,
        limits: &[Limit],
        (begin, end): (&Index, &Index),
        ranges: &Ranges,
    ) -> Option<Parts> {
        let of = |is_first: bool| {
            let limits = limits.iter().filter(|limit| limit.is_first == is_first);
            outermost(limits.map(|limit| limit.at.clone()), is_first, ranges)
        };
        let (firsts, lasts) = (of(true)?, of(false)?);
        if firsts.is_empty() && lasts.is_empty() {
            return None;
        }
        let mut stores = 0;
        for_each_store(&l.body, &mut |_| stores += 1);
        let copies = usize::from(!firsts.is_empty()) + usize::from(!lasts.is_empty());
        self.left = self.left.checked_sub(stores * copies)?;
        let greatest = |a: Index, b: &Index| match never_above(b, &a, ranges) {
            true => a,
            false => a.max(b.clone()),
        };
        let first = match firsts.as_slice() {
            [] => begin.clone(),
            firsts => lesser(&firsts.iter().fold(begin.clone(), greatest), end, ranges),
        };
        let last = lasts.iter().fold(end.clone(), |last, limit| lesser(limit, &last, ranges));
        let last = greatest(last, &first);
        Some(Parts { first: ranges.simplify(&first)?, last: ranges.simplify(&last)? })
    }
}

/// The iterations in which all conditions hold: from `first` to below `last`.
struct Parts {
    first: Index,
    last: Index,
}

/// A loop over a span; `None` if it never has an iteration.
fn spanned(
    mut l: Loop,
    begin: Index,
    end: Index,
    ranges: &Ranges,
) -> Result<Option<Node>, LowerError> {
    if begin == end || l.body.is_empty() {
        return Ok(None);
    }
    let runs = end.sub(&begin).and_then(|count| count.add(&Index::constant(-1)));
    let runs = runs.ok_or(LowerError::Overflow)?;
    let whole = begin.as_constant() == Some(0) && end.as_constant() == Some(l.extent);
    if !whole {
        l.span = Some(Box::new(Span { begin, end }));
    }
    Ok(if ranges.always(&runs) {
        Some(Node::Loop(l))
    } else if ranges.never(&runs) {
        None
    } else {
        let body = vec![Node::Loop(l)].into();
        Some(Node::Guard(Guard { conditions: vec![runs], body }))
    })
}

/// A parallel loop whose iterations run one of two bodies.
fn chosen(
    mut l: Loop,
    main: Loop,
    (first, last): (&Index, &Index),
    end: Index,
    ranges: &Ranges,
) -> Result<Vec<Node>, LowerError> {
    let var = Index::axis(l.var);
    let conditions = || {
        let before_last = last.sub(&var)?.add(&Index::constant(-1))?;
        let inside = match first.as_constant() {
            Some(0) => before_last,
            _ => before_last.min(var.sub(first)?),
        };
        let outside = Index::constant(-1).sub(&inside)?;
        Some((inside, outside))
    };
    let (inside, outside) = conditions().ok_or(LowerError::Overflow)?;
    let choice =
        |condition: Index, body: Body| Node::Guard(Guard { conditions: vec![condition], body });
    l.body = vec![choice(inside, main.body), choice(outside, l.body)].into();
    Ok(spanned(l, Index::constant(0), end, ranges)?.into_iter().collect())
}

/// The lesser of two indices, without minima that are decided for all values of the variables.
fn lesser(a: &Index, b: &Index, ranges: &Ranges) -> Index {
    if never_above(a, b, ranges) {
        return a.clone();
    }
    if never_above(b, a, ranges) {
        return b.clone();
    }
    let parts = match b.terms() {
        [term] if term.coefficient == 1 && b.constant_term() == 0 => match &term.atom {
            Atom::Min(p, q) => Some((p, q)),
            _ => None,
        },
        _ => None,
    };
    match parts {
        Some((p, q)) if never_above(a, p, ranges) => lesser(a, q, ranges),
        Some((p, q)) if never_above(a, q, ranges) => lesser(a, p, ranges),
        _ => a.clone().min(b.clone()),
    }
}

/// The greatest of some indices (or the least ones), without those that others exceed for all
/// values of the variables; `None` if they are too many.
fn outermost(
    indices: impl IntoIterator<Item = Index>,
    greatest: bool,
    ranges: &Ranges,
) -> Option<Vec<Index>> {
    let mut kept: Vec<Index> = Vec::new();
    for index in indices {
        let exceeds = |a: &Index, b: &Index| match greatest {
            true => never_above(b, a, ranges),
            false => never_above(a, b, ranges),
        };
        if kept.iter().any(|other| exceeds(other, &index)) {
            continue;
        }
        kept.retain(|other| !exceeds(&index, other));
        kept.push(index);
        if kept.len() > MOST_LIMITS {
            return None;
        }
    }
    Some(kept)
}

/// Whether `a <= b` for all values of the variables. Quotients are compared by their dividends,
/// which intervals cannot: `N/16 <= (N + 15)/16`.
fn never_above(a: &Index, b: &Index, ranges: &Ranges) -> bool {
    let Some(difference) = b.sub(a) else { return false };
    if ranges.tight_interval(&difference).lo >= 0 {
        return true;
    }
    let [x, y] = difference.terms() else { return false };
    let (plus, minus) = if x.coefficient > 0 { (x, y) } else { (y, x) };
    if plus.coefficient != -minus.coefficient {
        return false;
    }
    // Whole multiples of the constant belong into the quotient: p/c + 1 is (p + c)/c.
    let whole = difference.constant_term().div_euclid(plus.coefficient);
    match (&plus.atom, &minus.atom) {
        (Atom::Div(more, by), Atom::Div(less, same)) if by == same => {
            let inside = whole.checked_mul(*by).map(Index::constant);
            let left = inside.and_then(|inside| more.add(&inside)?.sub(less));
            left.is_some_and(|left| ranges.always(&left))
        }
        _ => false,
    }
}
