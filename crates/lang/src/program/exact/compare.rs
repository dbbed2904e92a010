//! Exact comparisons of integers of any size.

use super::{Exact, LARGEST, and, or, truth};
use crate::dtype::DType;
use crate::ops::{CompareOp, UnaryOp};
use crate::program::{Atom, Expr, Index, Scalar, Term};

impl Exact<'_> {
    /// An equivalent comparison with sides that fit.
    pub(super) fn compare(&self, op: CompareOp, a: &Index, b: &Index) -> Option<Expr> {
        if let (Some(a), Some(b)) = (self.fitting(a), self.fitting(b)) {
            return Some(Expr::CompareIndex(op, a, b));
        }
        if self.magnitude(a).max(self.magnitude(b)) > LARGEST {
            return None;
        }
        let difference = a.sub(b)?;
        let one_less = |index: &Index| index.sub(&Index::constant(1));
        match op {
            CompareOp::Ge => self.not_negative(&difference),
            CompareOp::Gt => self.not_negative(&one_less(&difference)?),
            CompareOp::Le => self.not_negative(&difference.scale(-1)?),
            CompareOp::Lt => self.not_negative(&one_less(&difference.scale(-1)?)?),
            CompareOp::Eq => Some(and(
                self.not_negative(&difference)?,
                self.not_negative(&difference.scale(-1)?)?,
            )),
            CompareOp::Ne => {
                let equal = self.compare(CompareOp::Eq, a, b)?;
                Some(Expr::Unary(UnaryOp::Not, Box::new(equal)))
            }
        }
    }

    /// Whether an index is at least zero.
    pub(super) fn not_negative(&self, index: &Index) -> Option<Expr> {
        self.step()?;
        if let Some(constant) = index.as_constant() {
            return Some(truth(constant >= 0));
        }
        if let Some(index) = self.fitting(index) {
            return Some(at_least_zero(index));
        }
        if let Some(isolated) = self.isolated(index) {
            return Some(isolated);
        }
        if let Some(cases) = self.cases(index) {
            let (a, b) = (self.not_negative(&cases.a)?, self.not_negative(&cases.b)?);
            // The minimum of two is non-negative if both are.
            return Some(if cases.is_least { and(a, b) } else { or(a, b) });
        }
        self.sign(index).map(at_least_zero)
    }

    /// An index that fits and has the same sign.
    pub(super) fn sign(&self, index: &Index) -> Option<Index> {
        let quotient = self.divide(index, 1 << 32)?.0;
        self.fits(&quotient).then_some(quotient)
    }

    /// Rewrites `factor * large + rest >= 0` with the rest, divided, on the other side.
    fn isolated(&self, index: &Index) -> Option<Expr> {
        let size = |term: &Term| {
            let atom = self.atom_interval(&term.atom).magnitude();
            atom.saturating_mul(i128::from(term.coefficient).abs())
        };
        let large = index.terms().iter().max_by_key(|term| size(term))?;
        let rest = self.fitting(&index.without(&large.atom))?;
        let least = large.coefficient > 0;
        let bound = rest.div(large.coefficient.checked_abs()?)?;
        let bound = if least { bound.scale(-1)? } else { bound };
        let op = if least { CompareOp::Ge } else { CompareOp::Le };
        if let Some(large) = self.fitting_atom(&large.atom) {
            return self.fits(&bound).then_some(Expr::CompareIndex(op, large, bound));
        }
        match &large.atom {
            Atom::Value(value) => self.compare_unsigned(op, value, bound),
            _ => None,
        }
    }

    /// A comparison of a `uint64` with an index that fits.
    fn compare_unsigned(&self, op: CompareOp, value: &Expr, bound: Index) -> Option<Expr> {
        if value.dtype(&self.dtype) != DType::UInt64 || !self.fits(&bound) {
            return None;
        }
        let unsigned = match bound.as_constant() {
            Some(constant) => Expr::Const(Scalar::integer(DType::UInt64, constant.into())),
            None => Expr::Index(bound.clone(), DType::UInt64),
        };
        let compared = Expr::Compare(op, Box::new(value.clone()), Box::new(unsigned));
        let zero = Index::constant(0);
        let sign = match bound.as_constant() {
            Some(constant) => truth(constant >= 0),
            None => Expr::CompareIndex(CompareOp::Ge, bound, zero),
        };
        Some(match op {
            CompareOp::Le => and(sign, compared),
            _ => or(negated(sign), compared),
        })
    }

    /// The two cases of an extremum that does not fit, if there is one in the sum.
    pub(super) fn cases(&self, index: &Index) -> Option<Cases> {
        let is_wide = |term: &&Term| {
            matches!(term.atom, Atom::Min(..) | Atom::Max(..))
                && self.fitting_atom(&term.atom).is_none()
        };
        let term = index.terms().iter().find(is_wide)?;
        let (Atom::Min(a, b) | Atom::Max(a, b)) = &term.atom else { return None };
        let rest = index.without(&term.atom);
        let case = |side: &Index| rest.add(&side.scale(term.coefficient)?);
        let is_min = matches!(term.atom, Atom::Min(..));
        let sides = (is_min, a.as_ref().clone(), b.as_ref().clone());
        Some(Cases { is_least: is_min == (term.coefficient > 0), a: case(a)?, b: case(b)?, sides })
    }

    /// Whether the first of two is the minimum (or the maximum, if `least` is false).
    pub(super) fn is_first(&self, least: bool, a: &Index, b: &Index) -> Option<Expr> {
        self.not_negative(&if least { b.sub(a)? } else { a.sub(b)? })
    }
}

/// An index that is the minimum or maximum of two.
pub(super) struct Cases {
    pub(super) is_least: bool,
    pub(super) a: Index,
    pub(super) b: Index,
    /// Whether the extremum is a minimum, and its operands, which select the case.
    pub(super) sides: (bool, Index, Index),
}

fn at_least_zero(index: Index) -> Expr {
    match index.as_constant() {
        Some(constant) => truth(constant >= 0),
        None => Expr::CompareIndex(CompareOp::Ge, index, Index::constant(0)),
    }
}

fn negated(condition: Expr) -> Expr {
    match condition {
        Expr::Const(scalar) => truth(scalar.as_integer() == 0),
        other => Expr::Unary(UnaryOp::Not, Box::new(other)),
    }
}
