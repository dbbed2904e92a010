//! Proofs about index arithmetic for all sizes.

use std::collections::BTreeMap;

use tensorwright_lang::ops::{ArithOp, CompareOp};
use tensorwright_lang::syntax::ast::{Expr, ExprKind};

use crate::build;
use crate::poly::{Atom, IndexSum, Poly, Term};
use crate::scope::Scope;

/// A range of an index variable: `lo` included, `hi` excluded.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) lo: Expr,
    pub(crate) hi: Expr,
}

impl Range {
    /// The range `0:hi`.
    pub(crate) fn up_to(hi: Expr) -> Range {
        Range { lo: build::int(0), hi }
    }

    /// Whether both ends are equal.
    pub(crate) fn equals(&self, other: &Range) -> bool {
        Poly::of(&self.lo) == Poly::of(&other.lo) && Poly::of(&self.hi) == Poly::of(&other.hi)
    }

    /// The number of values.
    pub(crate) fn extent(&self) -> Expr {
        let (lo, hi) = (Poly::of(&self.lo), Poly::of(&self.hi));
        hi.minus(&lo).map_or_else(|| self.hi.clone(), |extent| extent.to_expr())
    }
}

/// The ranges of the variables of a statement.
pub(crate) type Ranges = BTreeMap<String, Range>;

/// Proofs about index arithmetic. Assumes that sizes are at least 1 and that an integer scalar that
/// multiplies an index variable (a stride) is positive; scalars and data are otherwise
/// unconstrained.
pub(crate) struct Bounds<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) ranges: &'a Ranges,
}

/// The most substitutions of a variable by its bound in one proof.
const MAX_STEPS: usize = 16;

/// The most terms in a proof.
const MAX_TERMS: usize = 64;

impl Bounds<'_> {
    /// Whether a comparison holds for all values of the variables.
    pub(crate) fn holds(&self, condition: &Expr) -> bool {
        let ExprKind::Compare(op, lhs, rhs) = &condition.kind else { return false };
        let (lhs, rhs) = (Poly::of(lhs), Poly::of(rhs));
        let at_least = |a: &Poly, b: &Poly, by: i64| {
            let difference = a.minus(b).and_then(|d| d.minus(&Poly::constant(by)));
            difference.is_some_and(|difference| self.is_natural(&difference))
        };
        match op {
            CompareOp::Ge => at_least(&lhs, &rhs, 0),
            CompareOp::Gt => at_least(&lhs, &rhs, 1),
            CompareOp::Le => at_least(&rhs, &lhs, 0),
            CompareOp::Lt => at_least(&rhs, &lhs, 1),
            CompareOp::Eq => lhs == rhs,
            CompareOp::Ne => false,
        }
    }

    /// Whether a value is always in `0:hi`.
    pub(crate) fn is_below(&self, value: &Poly, hi: &Poly) -> bool {
        let room = hi.minus(value).and_then(|room| room.minus(&Poly::constant(1)));
        self.is_natural(value) && room.is_some_and(|room| self.is_natural(&room))
    }

    /// Whether a value is never negative.
    pub(crate) fn is_natural(&self, value: &Poly) -> bool {
        let mut value = value.clone();
        for _ in 0..MAX_STEPS {
            if value.terms().len() > MAX_TERMS {
                return false;
            }
            let open = value.terms().iter().find_map(|term| self.open_atom(term));
            let Some((term, place)) = open else { return self.is_natural_in_sizes(&value) };
            let Some(lower) = self.lowered(&value, &term, place) else { return false };
            value = lower;
        }
        false
    }

    /// A term with an atom that has a bound.
    fn open_atom(&self, term: &Term) -> Option<(Term, usize)> {
        let is_open = |atom: &Atom| match &atom.expr.kind {
            ExprKind::Name(name) => self.ranges.contains_key(name),
            ExprKind::Arith(ArithOp::Rem, ..) => true,
            ExprKind::Arith(ArithOp::Div, ..) => !self.is_constant(&atom.expr),
            _ => false,
        };
        let place = term.atoms.iter().position(is_open)?;
        Some((term.clone(), place))
    }

    /// Replaces an atom by its lower bound (or upper bound, where it is subtracted).
    fn lowered(&self, value: &Poly, term: &Term, place: usize) -> Option<Poly> {
        let mut others = term.clone();
        let atom = others.atoms.remove(place);
        // The term has the sign of its coefficient only if all other factors are non-negative.
        if !others.atoms.iter().all(|atom| self.is_factor(&atom.expr)) {
            return None;
        }
        let bound = self.bound(&atom.expr, others.coefficient > 0)?;
        let others = Poly::from(others);
        let without = value.minus(&others.times(&Poly::atom(atom))?)?;
        without.plus(&others.times(&bound)?)
    }

    fn bound(&self, atom: &Expr, least: bool) -> Option<Poly> {
        match &atom.kind {
            ExprKind::Name(name) => {
                let range = self.ranges.get(name)?;
                match least {
                    true => Some(Poly::of(&range.lo)),
                    false => Poly::of(&range.hi).minus(&Poly::constant(1)),
                }
            }
            ExprKind::Arith(ArithOp::Rem, _, divisor) => match least {
                true => Some(Poly::default()),
                false => Poly::of(divisor).minus(&Poly::constant(1)),
            },
            ExprKind::Arith(ArithOp::Div, inner, _) => {
                (least && self.is_natural(&Poly::of(inner))).then(Poly::default)
            }
            _ => None,
        }
    }

    /// Whether a factor of an index variable (a size, or an integer scalar such as a stride) is
    /// non-negative.
    fn is_factor(&self, expr: &Expr) -> bool {
        let is_scalar = |name: &str| self.scope.tensor(name).is_some_and(|t| t.shape.is_empty());
        self.is_constant(expr) || build::as_name(expr).is_some_and(is_scalar)
    }

    /// Whether the expression consists of sizes alone, and so is non-negative.
    fn is_constant(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => self.scope.sizes.contains(name),
            ExprKind::DimOf(..) | ExprKind::Int(_) => true,
            ExprKind::Arith(ArithOp::Add | ArithOp::Mul, a, b) => {
                self.is_constant(a) && self.is_constant(b)
            }
            // Divisors are positive.
            ExprKind::Arith(ArithOp::Div, a, b) => self.is_constant(a) && self.is_factor(b),
            _ => false,
        }
    }

    /// Substitutes `1 + s` with `s >= 0` for every size; then all coefficients must be
    /// non-negative.
    fn is_natural_in_sizes(&self, value: &Poly) -> bool {
        let mut shifted = Poly::default();
        for term in value.terms() {
            let mut all = Poly::constant(term.coefficient);
            for atom in &term.atoms {
                if !self.is_constant(&atom.expr) {
                    return false;
                }
                let factor = Poly::atom(atom.clone());
                // A quotient of sizes may be zero.
                let is_size = !matches!(atom.expr.kind, ExprKind::Arith(..));
                let factor = if is_size { factor.plus(&Poly::constant(1)) } else { Some(factor) };
                let Some(next) = factor.and_then(|factor| all.times(&factor)) else { return false };
                if next.terms().len() > MAX_TERMS {
                    return false;
                }
                all = next;
            }
            let Some(sum) = shifted.plus(&all) else { return false };
            shifted = sum;
        }
        shifted.terms().iter().all(|term| term.coefficient >= 0)
    }
}
