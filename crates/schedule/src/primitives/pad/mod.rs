//! `pad`: replaces a guarded read by a read of a padded copy.
//!
//! ```text
//! out: pad in
//! for h, kh {                                  for d0 in 0..H+2 {
//!   out(h) += (h+kh-1 >= 0 && h+kh-1 < H)        in.pad(d0) = (d0 >= 1 && d0 < H+1) ? in(d0-1) : 0;
//!             ? in(h+kh-1) * w(kh) : 0;    ->  }
//! }                                            for h, kh { out(h) += in.pad(h+kh) * w(kh); }
//! ```
//!
//! The copy `in.pad` covers the box of all positions that the loops reach, and holds the value of
//! the other branch where the condition fails. That branch is a constant if the read is alone, and
//! zero if the read is a factor of a product. The condition must only depend on the position that
//! is read, and the other factors must be readable in all iterations.
//!
//! A product with zero is zero unless the other factor is infinite or NaN: only then, the result
//! may be NaN where it was not before.

mod frame;

use std::fmt;

use frame::Frame;
use tensorwright_lang::ops::{ArithOp, UnaryOp};
use tensorwright_lang::program::{Expr, Index, Read, Scalar, TensorId};

use super::find::find_buffer;
use super::footprint::refuse_recurrence;
use super::plain::{Plain, is_zero};
use super::prepare::hoist;
use super::{Reach, Rule};
use crate::canonical::element;
use crate::lower::zero;
use crate::nest::{BufferId, LoopNest, Ranges, Simplify, StageId, rewrite_store};
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Reads a padded copy of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pad {
    /// The tensor.
    pub tensor: String,
}

impl fmt::Display for Pad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pad {}", self.tensor)
    }
}

impl Rule for Pad {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        Ok(Pad { tensor: words.name("the name of a tensor")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        let mut plain = Plain::of(nest, stage)?;
        let tensor = find_buffer(nest, &self.tensor)?;
        if tensor == plain.store.buffer {
            refuse_recurrence(stage, &plain.store, "copied before it is computed")?;
        }
        let ranges = plain.ranges();
        rewrite_store(&mut plain.store, &mut Simplify(&ranges)).ok_or_else(Refusal::overflow)?;
        // The copy's number is known before it is made: reads are moved to it first.
        let copy = TensorId(nest.buffers.len() as u32);
        let mut sites = Sites { nest, ranges: &ranges, tensor, copy, found: Vec::new() };
        plain.store.value = sites.search(&plain.store.value);
        let found = sites.found;
        let [first, ..] = found.as_slice() else {
            return Err(Refusal::new(format!(
                "`{stage}` does not read `{}` under a condition on positions alone, with a \
                 constant (zero, for a factor of a product) where it fails",
                self.tensor
            ))
            .help(
                "write `condition ? in(..) * w(..) : 0`, and pad what can be out of bounds first",
            ));
        };
        let frame = Frame::around(nest, tensor, &found, &ranges)?;
        let condition = frame.condition(first)?;
        for other in &found[1..] {
            if other.fill != first.fill || frame.condition(other)? != condition {
                return Err(Refusal::new(format!(
                    "`{stage}` reads `{}` under different conditions, and one copy cannot hold \
                     them all",
                    self.tensor
                )));
            }
        }
        frame.shift(&mut plain.store, copy).ok_or_else(Refusal::overflow)?;
        let copied = frame.make(nest, condition, first.fill)?;
        plain.replace(nest, vec![copied]);
        hoist(nest, &[StageId(copy)]);
        Ok(())
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { tensor: names.tensor(&self.tensor)? })
    }
}

/// A read under conditions.
struct Site {
    subscripts: Vec<Index>,
    conditions: Vec<Expr>,
    /// The value of the element where a condition fails.
    fill: Scalar,
}

/// Finds the reads of a tensor that can use a padded copy, and redirects them.
struct Sites<'a> {
    nest: &'a LoopNest,
    ranges: &'a Ranges,
    tensor: BufferId,
    copy: BufferId,
    found: Vec<Site>,
}

impl Sites<'_> {
    /// The expression without selections around reads of the tensor.
    fn search(&mut self, expr: &Expr) -> Expr {
        let mut again = |expr: &Expr| Box::new(self.search(expr));
        match expr {
            Expr::Select(condition, then, otherwise) => {
                let sites = self.found.len();
                if let Some(fill) = constant(otherwise)
                    && is_positional(condition)
                    && let Some(padded) = self.absorb(then, vec![(**condition).clone()], fill)
                {
                    return padded;
                }
                self.found.truncate(sites);
                let (then, otherwise) = (self.search(then), self.search(otherwise));
                Expr::Select(condition.clone(), Box::new(then), Box::new(otherwise))
            }
            Expr::Unary(op, a) => Expr::Unary(*op, again(a)),
            Expr::Cast(dtype, a) => Expr::Cast(*dtype, again(a)),
            Expr::Arith(op, a, b) => {
                let a = again(a);
                Expr::Arith(*op, a, again(b))
            }
            Expr::Call(builtin, args) => {
                Expr::Call(*builtin, args.iter().map(|arg| *again(arg)).collect())
            }
            other => other.clone(),
        }
    }

    /// The expression with conditions moved into the read of the tensor. This requires that the
    /// expression is `fill` wherever the element is its padding value.
    fn absorb(&mut self, expr: &Expr, conditions: Vec<Expr>, fill: Scalar) -> Option<Expr> {
        let is_zero = is_zero(fill);
        match expr {
            Expr::Read(read) if read.tensor == self.tensor => {
                let plain =
                    read.checked.is_empty() && !read.subscripts.iter().any(Index::has_value);
                if !plain {
                    return None;
                }
                let subscripts = read.subscripts.clone();
                self.found.push(Site { subscripts: subscripts.clone(), conditions, fill });
                Some(element(self.copy, subscripts))
            }
            Expr::Select(condition, then, otherwise)
                if constant(otherwise) == Some(fill) && is_positional(condition) =>
            {
                let all = conditions.into_iter().chain([(**condition).clone()]).collect();
                self.absorb(then, all, fill)
            }
            Expr::Arith(ArithOp::Mul, a, b) if is_zero => {
                if let Some(a) = self.absorb(a, conditions.clone(), fill) {
                    return self.is_total(b).then(|| product(a, (**b).clone()));
                }
                let b = self.absorb(b, conditions, fill)?;
                self.is_total(a).then(|| product((**a).clone(), b))
            }
            Expr::Unary(UnaryOp::Neg, a) if is_zero => {
                Some(Expr::Unary(UnaryOp::Neg, Box::new(self.absorb(a, conditions, fill)?)))
            }
            Expr::Cast(dtype, a) if is_zero => {
                let inner = constant(&zero(a.dtype(&|id| self.nest.dtype(id))))?;
                Some(Expr::Cast(*dtype, Box::new(self.absorb(a, conditions, inner)?)))
            }
            _ => None,
        }
    }

    /// Whether an expression can be evaluated in all iterations.
    fn is_total(&self, expr: &Expr) -> bool {
        let mut total = true;
        expr.walk_reads(&mut |read| {
            // Reads of the copy are in its box by construction.
            total &= read.tensor == self.copy || self.is_inside(read);
        });
        total
    }

    fn is_inside(&self, read: &Read) -> bool {
        let buffer = self.nest.buffer(read.tensor);
        read.checked.is_empty() && buffer.is_inside(&read.subscripts, self.ranges)
    }
}

fn product(a: Expr, b: Expr) -> Expr {
    Expr::Arith(ArithOp::Mul, Box::new(a), Box::new(b))
}

/// Whether a condition depends only on loops, not on data.
fn is_positional(condition: &Expr) -> bool {
    match condition {
        Expr::CompareIndex(_, a, b) => !a.has_value() && !b.has_value(),
        Expr::Logic(_, a, b) => is_positional(a) && is_positional(b),
        Expr::Unary(UnaryOp::Not, a) => is_positional(a),
        _ => false,
    }
}

fn constant(expr: &Expr) -> Option<Scalar> {
    match expr {
        Expr::Const(scalar) => Some(*scalar),
        _ => None,
    }
}
