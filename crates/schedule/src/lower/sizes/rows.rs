//! Gives the last iteration of an unrolled loop a body for each number of statements that run.
//!
//! ```text
//! for m.0 in M/3..(M + 2)/3 {                     for m.0 in M/3..(M + 2)/3 {
//!   for k {                                         if (M <= 3*m.0 + 1) {
//!     y(3*m.0) += ..;                                 for k { y(3*m.0) += ..; }
//!     if (3*m.0 + 2 <= M) y(3*m.0 + 1) += ..;  ->   }
//!     if (3*m.0 + 3 <= M) y(3*m.0 + 2) += ..;       if (3*m.0 + 2 <= M && M <= 3*m.0 + 2) {
//!   }                                                 for k { y(3*m.0) += ..; y(3*m.0 + 1) += ..; }
//! }                                                 } ..
//! ```
//!
//! Without it, every iteration of the inner loop asks which rows there are.

use tensorwright_lang::program::Index;

use super::condition::Statements;
use super::facts::Facts;
use super::{LowerError, never_above};
use crate::nest::{Body, Guard, Loop, Node, Ranges, for_each_loop, for_each_store};

/// The most stores that copies may add to a nest.
const MOST_COPIES: usize = 384;

/// The most bodies of one loop.
const MOST_ROWS: usize = 8;

pub(super) struct Rows {
    /// The stores that copies may still add.
    left: usize,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self { left: MOST_COPIES }
    }

    pub(super) fn nodes(&mut self, nodes: Body, ranges: &Ranges) -> Result<Body, LowerError> {
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            all.push(match node {
                Node::Loop(mut l) => {
                    let inner = ranges.with(l.var, l.extent);
                    l.body = match self.bodies(&l, &inner) {
                        Some(bodies) => bodies?,
                        None => self.nodes(l.body, &inner)?,
                    };
                    Node::Loop(l)
                }
                Node::Guard(mut guard) => {
                    guard.body = self.nodes(guard.body, ranges)?;
                    Node::Guard(guard)
                }
                other => other,
            });
        }
        Ok(all.into())
    }

    /// The bodies of a loop, one for each number of rows; `None` if there is one.
    fn bodies(&mut self, l: &Loop, ranges: &Ranges) -> Option<Result<Body, LowerError>> {
        // Where no inner loop repeats it, the question is cheap.
        let mut repeats = false;
        for_each_loop(&l.body, &mut |_| repeats = true);
        if !repeats || l.span.is_none() {
            return None;
        }
        let rows = rows(l, ranges)?;
        let mut stores = 0;
        for_each_store(&l.body, &mut |_| stores += 1);
        // On average, half of the rows run.
        self.left = self.left.checked_sub((stores * rows.len()).div_ceil(2))?;
        Some(apart(l, &rows, ranges))
    }
}

/// Conditions that differ by constants, from the one that holds the longest.
fn rows(l: &Loop, ranges: &Ranges) -> Option<Vec<Index>> {
    let statements = Statements::of(l, ranges);
    let plain = |index: &Index| index.sub(&Index::constant(index.constant_term()));
    let mut found: Vec<Index> = Vec::new();
    for limit in statements.limits().into_iter().filter(|limit| !limit.is_first) {
        let is_row = |other: &Index| plain(other) == plain(&limit.condition);
        let mut loops = false;
        for_each_loop(&l.body, &mut |inner| {
            loops |= limit.condition.mentions(&|var| var == inner.var);
        });
        if !loops && statements.is_scalar(&limit.condition) && found.iter().all(is_row) {
            found.push(limit.condition);
        }
    }
    found.sort_by_key(|index| std::cmp::Reverse(index.constant_term()));
    let is_one = |pair: &[Index]| never_above(&pair[1], &pair[0], ranges);
    let fits = (1..=MOST_ROWS).contains(&found.len()) && found.windows(2).all(is_one);
    fits.then_some(found)
}

/// A body for each number of conditions that hold.
fn apart(l: &Loop, rows: &[Index], ranges: &Ranges) -> Result<Body, LowerError> {
    let below = |index: &Index| Index::constant(-1).sub(index).ok_or(LowerError::Overflow);
    let mut locals = l.locals.clone();
    for_each_loop(&l.body, &mut |inner| locals.extend(&inner.locals));
    let mut all = Vec::new();
    for count in 0..=rows.len() {
        let (holding, failing) = rows.split_at(count);
        let mut known = holding.to_vec();
        for row in failing {
            known.push(below(row)?);
        }
        // The last one that holds and the first one that fails imply the others.
        let mut conditions: Vec<Index> = holding.last().cloned().into_iter().collect();
        if let Some(row) = failing.first() {
            conditions.push(below(row)?);
        }
        let body = Facts::new(known).assume_all(l.body.clone(), ranges)?;
        let mut is_seen = false;
        for_each_store(&body, &mut |store| is_seen |= !locals.contains(&store.buffer));
        if is_seen {
            all.push(Node::Guard(Guard { conditions, body }));
        }
    }
    Ok(all.into())
}
