//! `segment`: splits a recurrence into segments that can run in parallel.
//!
//! ```text
//! y: split t 4096
//! y: segment t.0
//! for t.0 in 0..512 {                        for t.0 in 0..511 {
//!   for t.1 in 0..4096 {                       for t.1 { y.total(t.0) += x(4096*t.0 + t.1); }
//!     y(4096*t.0 + t.1) =                    }
//!       y(4096*t.0 + t.1 - 1)         ->     for t.0 in 0..511 { y.last(t.0) = y.last(t.0 - 1) + y.total(t.0); }
//!       + x(4096*t.0 + t.1);                 for t.0 in 0..512 {
//!   }                                          for t.1 { y(..) = (t.1 > 0 ? y(.. - 1) : y.last(t.0 - 1)) + x(..); }
//! }                                          }
//! ```
//!
//! The recurrence must combine the previous element with a term by an associative operator. Terms
//! are computed twice; the loop over segments is spatial afterwards, in `y.total` and in `y`, and
//! `y.last` is a short recurrence. A shorter last segment is peeled.

use std::fmt;

use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::program::{Expr, Index, Read, Running};

use super::find::{find_loop, fresh_name, loop_at_mut};
use super::plain::{Plain, own_loops};
use super::prepare::chain;
use super::vectorize::follows;
use super::{Reach, Rule};
use crate::canonical::{element, neutral};
use crate::nest::{
    Bound, Buffer, BufferId, LoopNest, Node, Owner, Ranges, Role, Store, Var, rewrite_store,
};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Computes segments of a recurrence separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The loop over segments.
    pub target: String,
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}", self.target)
    }
}

/// A recurrence in segments.
struct Pieces<'e> {
    running: Running<'e>,
    /// The value in place of the element before the first.
    start: &'e Expr,
    /// The positions of the loops over segments and over the steps of one.
    outer: usize,
    inner: usize,
    /// The dimension that they traverse.
    dimension: usize,
}

impl<'e> Pieces<'e> {
    fn of(nest: &LoopNest, stage: &str, target: &str, plain: &'e Plain) -> Result<Self, Refusal> {
        let outer = plain.find(nest, stage, target, Role::Scan)?;
        let refuse = |why: String| {
            Refusal::new(format!("the recurrence `{stage}` cannot be taken apart: {why}"))
        };
        let steps = plain.loops.iter().enumerate().filter(|(_, (.., role))| *role == Role::Scan);
        let [(first, _), (inner, (var, block, _))] = steps.collect::<Vec<_>>()[..] else {
            return Err(refuse("its loop has to be split in two".into())
                .help(format!("split it: `{stage}: split {target} 4096`")));
        };
        if first != outer {
            return Err(refuse(format!("loop `{target}` goes over the steps of a piece")));
        }
        let (over, count, _) = plain.loops[outer];
        let Store { buffer, subscripts, value, domain, .. } = &plain.store;
        let dtype = nest.dtype(*buffer);
        let running = Running::of(value, *buffer);
        let running = running.filter(|running| follows(&plain.store, running.read, *var));
        let running = running.filter(|running| running.is_associative(dtype));
        let Some(running) = running.filter(|_| !dtype.is_storage_only()) else {
            return Err(refuse("its elements need each other's results".into())
                .help("share another loop of the stage between workers"));
        };
        let Expr::Select(_, _, start) = running.before else {
            return Err(refuse("it is in pieces already".into()));
        };
        let moves = |index: &Index| index.mentions(&|other| other == *var || other == over);
        let dimension = subscripts.iter().position(moves).unwrap_or_default();
        let by = |var: Var| subscripts[dimension].coefficient_of(var);
        let follow = by(over) == by(*var).and_then(|by| by.checked_mul(*block));
        let mut full: Ranges = plain.ranges();
        full.insert(over, count - 1);
        let is_full = domain.iter().all(|bound| !moves(&bound.index) || full.always(&bound.index));
        if count < 2 || !follow || !is_full {
            return Err(refuse(format!("loop `{target}` does not go over whole pieces")));
        }
        Ok(Self { running, start, outer, inner, dimension })
    }

    /// Subscripts with a segment number in place of a step number.
    fn at_piece(&self, subscripts: &[Index], piece: Index) -> Vec<Index> {
        let mut subscripts = subscripts.to_vec();
        subscripts[self.dimension] = piece;
        subscripts
    }
}

impl Rule for Segment {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Segment { target: words.name("the name of a loop of a recurrence")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let plain = Plain::of(nest, stage)?;
        let pieces = Pieces::of(nest, stage, &self.target, &plain)?;
        let overflow = || Refusal::new(format!("the loops of `{stage}` overflow"));
        let (op, own) = (pieces.running.op, plain.store.buffer);
        let (over, count, _) = plain.loops[pieces.outer];
        let (step, ..) = plain.loops[pieces.inner];
        let result = nest.buffer(own).clone();
        let mut shape = result.shape.clone();
        shape[pieces.dimension] = count - 1;
        let add = |nest: &mut LoopNest, what: &str| -> BufferId {
            let name = fresh_name(nest, &format!("{stage}.{what}"));
            let owner = Owner::Intermediate;
            nest.add_buffer(Buffer::new(name, result.dtype, shape.clone(), owner))
        };
        let (total, last) = (add(nest, "total"), add(nest, "last"));
        let moves = |index: &Index| index.mentions(&|var| var == step || var == over);
        let mut domain = plain.store.domain.clone();
        domain.retain(|bound| !moves(&bound.index));

        // The totals of all segments but the last.
        let loops =
            plain.loops.iter().enumerate().map(|(place, (var, extent, role))| match place {
                _ if place == pieces.outer => (*var, count - 1, Role::Spatial),
                _ if place == pieces.inner => (*var, *extent, Role::Reduce),
                _ => (*var, *extent, *role),
            });
        let at = pieces.at_piece(&plain.store.subscripts, Index::axis(over));
        let mut sum = Store::new(total, at.clone(), pieces.running.term.clone());
        sum.combine = Some(op);
        sum.init = Some(neutral(op, result.dtype));
        sum.domain.clone_from(&domain);
        let totals = own_stage(nest, loops, sum).ok_or_else(overflow)?;

        // The last element of each of them.
        let loops = plain.loops.iter().enumerate().filter(|(place, _)| *place != pieces.inner);
        let loops = loops.map(|(place, (var, extent, role))| match place == pieces.outer {
            true => (*var, count - 1, Role::Scan),
            false => (*var, *extent, *role),
        });
        let earlier = Index::axis(over).sub(&Index::constant(1)).ok_or_else(overflow)?;
        let is_later = |index: &Index, then: Expr, otherwise: &Expr| {
            let condition = Expr::CompareIndex(CompareOp::Ge, index.clone(), Index::constant(0));
            Expr::Select(Box::new(condition), Box::new(then), Box::new(otherwise.clone()))
        };
        let before = pieces.at_piece(&plain.store.subscripts, earlier.clone());
        let before = is_later(&earlier, element(last, before), pieces.start);
        let value = Running::combined(op, before.clone(), element(total, at.clone()));
        let mut store = Store::new(last, at, value);
        store.domain = domain;
        let lasts = own_stage(nest, loops, store).ok_or_else(overflow)?;

        // The segments that start from there.
        let own_before = Index::axis(step).sub(&Index::constant(1)).ok_or_else(overflow)?;
        let read: Read = pieces.running.read.clone();
        let value = is_later(&own_before, Expr::Read(read), &before);
        let value = Running::combined(op, value, pieces.running.term.clone());
        let outer = pieces.outer;
        let mut plain = plain;
        plain.store.value = value;
        plain.loops[outer].2 = Role::Spatial;
        let ranges = plain.ranges();
        let is_cut = |bound: &Bound| moves(&bound.index) && !ranges.always(&bound.index);
        let is_cut = plain.store.domain.iter().any(is_cut);
        plain.replace(nest, vec![totals, lasts]);
        // The last segment may have fewer steps, and is peeled.
        let path = find_loop(nest, stage, &self.target)?;
        loop_at_mut(nest, &path)?.peel = is_cut;
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)? })
    }
}

/// Gives a stage new loops.
fn own_stage(
    nest: &mut LoopNest,
    loops: impl Iterator<Item = (Var, i64, Role)>,
    mut store: Store,
) -> Option<Node> {
    let (loops, mut renamed) = own_loops(nest, loops);
    rewrite_store(&mut store, &mut renamed)?;
    Some(chain(&loops, store))
}
