//! Exact index arithmetic in 64-bit machine integers.
//!
//! Index arithmetic is defined on unbounded integers: range inference and bounds proofs rely on
//! that. Machine arithmetic wraps around at 64 bits. [`Exact`] rewrites expressions such that both
//! agree:
//!
//! | where | what is needed |
//! | --- | --- |
//! | a proven subscript, a value | the number modulo 2^64: the true one fits, or wraps by definition |
//! | a comparison, `min`, `max`, `/`, `%` | the number itself |
//! | a checked subscript | whether the number itself is in bounds |
//!
//! A sum *fits* if the magnitudes of its terms, taken from ranges of axes and types of data, add up
//! to less than 2^63; it is left as it is, and nearly all are. Otherwise, cheapest first:
//!
//! ```text
//! 3*I + 5 < N          I <= (N - 6) / 3                      one large term: the rest moves across
//! min(I + 1, J) >= 0   I + 1 >= 0 && J >= 0                  an extremum: both sides
//! I + J >= 0           I/h + J/h + (I%h + J%h) / h >= 0      h = 2^32: what is left after h fits
//! (I + J) / 3          I/3 + J/3 + (I%3 + J%3) / 3
//! ```
//!
//! Expressions without such a form (factors beyond 2^30 on several 64-bit data, for instance) are
//! rejected.

mod compare;
mod divide;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use super::{Atom, AxisId, Expr, Index, Interval, Read, Rewrite, Scalar, TensorId};
use crate::builtin::Builtin;
use crate::dtype::DType;
use crate::ops::{ArithOp, LogicOp};

/// Larger numbers are rejected, so that the reference can compute in 128 bits.
const LARGEST: i128 = 1 << 120;

/// The most rewriting steps of one expression: cases multiply where extrema of large numbers nest.
const WORK: u32 = 5_000;

/// The known ranges of the numbers in an expression.
pub struct Exact<'a> {
    axis: &'a dyn Fn(AxisId) -> Interval,
    dtype: &'a dyn Fn(TensorId) -> DType,
    extent: &'a dyn Fn(TensorId, u32) -> Option<i64>,
    work: Cell<u32>,
}

impl std::fmt::Debug for Exact<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exact").field("work", &self.work).finish_non_exhaustive()
    }
}

impl<'a> Exact<'a> {
    /// Takes the ranges of axes, the types of tensors and the extents of their dimensions.
    #[must_use]
    pub fn new(
        axis: &'a dyn Fn(AxisId) -> Interval,
        dtype: &'a dyn Fn(TensorId) -> DType,
        extent: &'a dyn Fn(TensorId, u32) -> Option<i64>,
    ) -> Self {
        Self { axis, dtype, extent, work: Cell::new(WORK) }
    }

    /// An expression with the same value whose index arithmetic may be computed modulo 2^64;
    /// `None` if there is none.
    #[must_use]
    pub fn expr(&self, expr: &Expr) -> Option<Expr> {
        if self.is_exact(expr) {
            return Some(expr.clone());
        }
        self.work.set(WORK);
        expr.rewrite(&mut Rules(self))
    }

    /// An index with the same value modulo 2^64 that may be computed modulo 2^64.
    #[must_use]
    pub fn index(&self, index: &Index) -> Option<Index> {
        self.work.set(WORK);
        self.modulo(&index.rewrite(&mut Rules(self))?)
    }

    /// An index that fits and is non-negative exactly where the given one is.
    #[must_use]
    pub fn condition(&self, index: &Index) -> Option<Index> {
        self.work.set(WORK);
        let index = index.rewrite(&mut Rules(self))?;
        self.fitting(&index).or_else(|| self.sign(&index))
    }

    /// Whether the index arithmetic of an expression may be computed modulo 2^64 as it is.
    #[must_use]
    pub fn is_exact(&self, expr: &Expr) -> bool {
        let mut exact = true;
        expr.walk(&mut |expr| {
            exact = exact
                && match expr {
                    Expr::Index(index, _) => self.parts_fit(index),
                    Expr::CompareIndex(_, a, b) => self.is_fitting(a) && self.is_fitting(b),
                    Expr::Read(read) => {
                        (0..).zip(&read.subscripts).all(|(dimension, subscript)| {
                            self.parts_fit(subscript)
                                && (!read.checked.contains(&dimension)
                                    || (self.extent)(read.tensor, dimension)
                                        .is_none_or(|extent| self.keeps_bounds(subscript, extent)))
                        })
                    }
                    _ => true,
                }
        });
        exact
    }

    /// Whether an index and its parts are computed without wrapping around.
    fn is_fitting(&self, index: &Index) -> bool {
        self.fits(index) && self.parts_fit(index)
    }

    /// Whether the parts of an index are exact where they must be.
    fn parts_fit(&self, index: &Index) -> bool {
        self.magnitude(index) <= LARGEST
            && index.terms().iter().all(|term| match &term.atom {
                Atom::Axis(_) | Atom::Value(_) => true,
                Atom::Div(inner, _) | Atom::Product(inner, _) => self.is_fitting(inner),
                Atom::Mod(inner, by) if by.count_ones() == 1 => self.parts_fit(inner),
                Atom::Mod(inner, _) => self.is_fitting(inner),
                Atom::Min(a, b) | Atom::Max(a, b) => self.is_fitting(a) && self.is_fitting(b),
            })
    }

    /// Whether a subscript modulo 2^64 is in bounds only where the exact one is.
    fn keeps_bounds(&self, subscript: &Index, extent: i64) -> bool {
        let turn = 1_i128 << 64;
        self.interval(subscript).within(i128::from(extent) - turn, turn)
    }

    fn step(&self) -> Option<()> {
        self.work.set(self.work.get().checked_sub(1)?);
        Some(())
    }

    /// An interval that contains the values of an index.
    fn interval(&self, index: &Index) -> Interval {
        index.interval(&self.axis, &|value| self.value_interval(value))
    }

    fn atom_interval(&self, atom: &Atom) -> Interval {
        atom.interval(&self.axis, &|value| self.value_interval(value))
    }

    /// An interval that contains the values of an integer.
    fn value_interval(&self, value: &Expr) -> Interval {
        let dtype = value.dtype(&self.dtype);
        let all = Interval::of_type(dtype);
        let found = match value {
            Expr::Const(scalar) if !dtype.is_float() => Interval::point(scalar.as_integer()),
            Expr::Index(index, _) if dtype.is_integer() => self.interval(index),
            Expr::Cast(_, inner) if inner.dtype(&self.dtype).is_integer() => {
                self.value_interval(inner)
            }
            Expr::Arith(op @ (ArithOp::Div | ArithOp::Rem), inner, by) => {
                let by = match **by {
                    Expr::Const(by) if dtype.is_integer() && by.as_integer() > 0 => by.as_integer(),
                    _ => return all,
                };
                let inner = self.value_interval(inner);
                match op {
                    ArithOp::Div => inner.floor_div(by),
                    _ => Interval { lo: 0, hi: by - 1 },
                }
            }
            Expr::Select(_, a, b) => self.value_interval(a).hull(self.value_interval(b)),
            Expr::Call(builtin, args) if dtype.is_integer() => {
                let args: Vec<Interval> = args.iter().map(|arg| self.value_interval(arg)).collect();
                match (builtin, args.as_slice()) {
                    (Builtin::Min, [a, b]) => a.least(*b),
                    (Builtin::Max, [a, b]) => a.greatest(*b),
                    (Builtin::Clamp, [a, lo, hi]) => a.greatest(*lo).least(*hi),
                    // `&` with a non-negative number is at most that number.
                    (Builtin::BitAnd, [a, b]) if b.lo >= 0 && (a.lo < 0 || b.hi <= a.hi) => {
                        Interval { lo: 0, hi: b.hi }
                    }
                    (Builtin::BitAnd, [a, _]) if a.lo >= 0 => Interval { lo: 0, hi: a.hi },
                    _ => all,
                }
            }
            _ => all,
        };
        if found.within(all.lo, all.hi + 1) { found } else { all }
    }

    /// A bound on the magnitude of all partial sums of an index.
    fn magnitude(&self, index: &Index) -> i128 {
        let constant = i128::from(index.constant_term()).abs();
        index.terms().iter().fold(constant, |sum, term| {
            let atom = self.atom_interval(&term.atom).magnitude();
            sum.saturating_add(atom.saturating_mul(i128::from(term.coefficient).abs()))
        })
    }

    /// Whether an index is computed in 64 bits without wrapping around, provided that its atoms
    /// are. A single 64-bit number needs no arithmetic.
    fn fits(&self, index: &Index) -> bool {
        if self.magnitude(index) <= i128::from(i64::MAX) {
            return true;
        }
        let alone = matches!(index.terms(), [term] if term.coefficient == 1);
        alone && index.constant_term() == 0 && self.interval(index).is_64_bit()
    }

    /// An equal index that fits, if there is one.
    fn fitting(&self, index: &Index) -> Option<Index> {
        self.step()?;
        let mut sum = Index::constant(index.constant_term());
        for term in index.terms() {
            sum = sum.add(&self.fitting_atom(&term.atom)?.scale(term.coefficient)?)?;
        }
        self.fits(&sum).then_some(sum)
    }

    fn fitting_atom(&self, atom: &Atom) -> Option<Index> {
        let found = match atom {
            Atom::Axis(_) | Atom::Value(_) => Index::atom(atom.clone()),
            Atom::Product(inner, factor) => self.fitting(inner)?.times(*factor)?,
            Atom::Div(inner, by) => match self.fitting(inner) {
                Some(inner) => inner.div(*by)?,
                None => self.divide(inner, *by)?.0,
            },
            Atom::Mod(inner, by) => match self.fitting(inner) {
                Some(inner) => inner.rem(*by),
                // The low bits do not depend on the others.
                None if by.count_ones() == 1 => self.modulo(inner)?.rem(*by),
                None => self.divide(inner, *by)?.1,
            },
            Atom::Min(a, b) | Atom::Max(a, b) => match (self.fitting(a), self.fitting(b)) {
                (Some(a), Some(b)) => extremum(matches!(atom, Atom::Min(..)), a, b),
                _ if self.atom_interval(atom).is_64_bit() => self.select(atom, a, b)?,
                _ => return None,
            },
        };
        self.fits(&found).then_some(found)
    }

    /// An index equal modulo 2^64 whose parts fit where that matters.
    fn modulo(&self, index: &Index) -> Option<Index> {
        self.step()?;
        if self.magnitude(index) > LARGEST {
            return None;
        }
        let mut sum = Index::constant(index.constant_term());
        for term in index.terms() {
            let atom = match (self.fitting_atom(&term.atom), &term.atom) {
                (Some(atom), _) => atom,
                (None, Atom::Div(inner, by)) => self.divide(inner, *by)?.0,
                (None, atom @ (Atom::Min(a, b) | Atom::Max(a, b))) => self.select(atom, a, b)?,
                (None, Atom::Value(_)) => Index::atom(term.atom.clone()),
                (None, Atom::Axis(_) | Atom::Mod(..) | Atom::Product(..)) => return None,
            };
            sum = sum.add(&atom.scale(term.coefficient)?)?;
        }
        Some(sum)
    }

    /// An extremum modulo 2^64, as a selection by an exact comparison.
    fn select(&self, atom: &Atom, a: &Index, b: &Index) -> Option<Index> {
        let first = self.is_first(matches!(atom, Atom::Min(..)), a, b)?;
        let side = |index: &Index| Some(Box::new(as_value(self.modulo(index)?)));
        Some(Index::value(Expr::Select(Box::new(first), side(a)?, side(b)?)))
    }

    /// A subscript that modulo 2^64 is out of bounds exactly where the given one is.
    fn checked(&self, subscript: &Index, extent: i64) -> Option<Index> {
        if self.keeps_bounds(subscript, extent) {
            return self.modulo(subscript);
        }
        let last = Index::constant(extent.checked_sub(1)?);
        let inside = and(self.not_negative(subscript)?, self.not_negative(&last.sub(subscript)?)?);
        let outside = Expr::Const(Scalar::integer(DType::Int64, -1));
        let value = as_value(self.modulo(subscript)?);
        Some(Index::value(Expr::Select(Box::new(inside), Box::new(value), Box::new(outside))))
    }
}

/// Rewrites values inside subscripts first: they have types of their own.
struct Rules<'a, 'e>(&'a Exact<'e>);

impl Rewrite for Rules<'_, '_> {
    fn read(&mut self, mut read: Read) -> Option<Expr> {
        for (dimension, subscript) in (0..).zip(&mut read.subscripts) {
            let extent = (self.0.extent)(read.tensor, dimension);
            *subscript = match extent.filter(|_| read.checked.contains(&dimension)) {
                Some(extent) => self.0.checked(subscript, extent)?,
                None => self.0.modulo(subscript)?,
            };
        }
        Some(Expr::Read(read))
    }

    fn expr(&mut self, expr: Expr) -> Option<Expr> {
        Some(match expr {
            Expr::Index(index, dtype) => Expr::Index(self.0.modulo(&index)?, dtype),
            Expr::CompareIndex(op, a, b) => self.0.compare(op, &a, &b)?,
            other => other,
        })
    }
}

fn extremum(least: bool, a: Index, b: Index) -> Index {
    if least { a.min(b) } else { a.max(b) }
}

/// An index as a value of `int64`.
fn as_value(index: Index) -> Expr {
    match index.as_constant() {
        Some(constant) => Expr::Const(Scalar::integer(DType::Int64, i128::from(constant))),
        None => Expr::Index(index, DType::Int64),
    }
}

fn truth(value: bool) -> Expr {
    Expr::Const(Scalar::integer(DType::Bool, i128::from(value)))
}

fn and(a: Expr, b: Expr) -> Expr {
    logic(LogicOp::And, a, b)
}

fn or(a: Expr, b: Expr) -> Expr {
    logic(LogicOp::Or, a, b)
}

fn logic(op: LogicOp, a: Expr, b: Expr) -> Expr {
    let decides = op == LogicOp::Or;
    let known = |expr: &Expr| match expr {
        Expr::Const(scalar) => Some(scalar.as_integer() != 0),
        _ => None,
    };
    match (known(&a), known(&b)) {
        (Some(value), _) | (_, Some(value)) if value == decides => truth(decides),
        (Some(_), _) => b,
        (_, Some(_)) => a,
        _ => Expr::Logic(op, Box::new(a), Box::new(b)),
    }
}
