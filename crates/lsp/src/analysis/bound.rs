//! Symbolic upper bounds of ranges, and extents of tensors.

use std::collections::BTreeSet;
use std::fmt;

use tensorwright_lang::ops::ArithOp;
use tensorwright_lang::syntax::ast::{Expr, ExprKind};
use tensorwright_lang::syntax::print_expr;

use super::poly::{Poly, Values};

/// One formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Formula {
    Poly(Poly),
    /// `numerator / divisor + 1`, rounded down.
    Steps {
        numerator: Poly,
        divisor: Poly,
    },
    /// An expression of a `where` that is not a polynomial.
    Written(Expr),
}

/// The minimum of one or more formulas.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UpperBound {
    pub(super) bounds: Vec<Formula>,
    pub(super) basis: Basis,
}

/// The assumptions of a formula.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Basis {
    /// The integer scalars that are assumed to be positive.
    pub(super) positive: BTreeSet<String>,
    /// Whether it was inferred from sample sizes: a conditional or non-affine subscript may limit
    /// the range for other sizes.
    pub(super) sampled: bool,
}

impl Formula {
    fn value(&self, values: &Values) -> Option<i64> {
        let of = |name: &String| values.get(name).copied();
        match self {
            Formula::Poly(poly) => poly.value(of),
            Formula::Steps { numerator, divisor } => {
                let divisor = divisor.value(of).filter(|divisor| *divisor > 0)?;
                numerator.value(of)?.checked_div_euclid(divisor)?.checked_add(1)
            }
            Formula::Written(expr) => written_value(expr, values),
        }
    }
}

/// The value of a `where` expression in which all names are sizes.
fn written_value(expr: &Expr, values: &Values) -> Option<i64> {
    let operands = expr.operands().into_iter().map(|operand| written_value(operand, values));
    let operands: Vec<i64> = operands.collect::<Option<_>>()?;
    match (&expr.kind, operands.as_slice()) {
        (ExprKind::Int(value), _) => i64::try_from(*value).ok(),
        (ExprKind::Name(name), _) => values.get(name).copied(),
        (ExprKind::Arith(op, ..), [lhs, rhs]) => match op {
            ArithOp::Add => lhs.checked_add(*rhs),
            ArithOp::Sub => lhs.checked_sub(*rhs),
            ArithOp::Mul => lhs.checked_mul(*rhs),
            ArithOp::Div if *rhs > 0 => lhs.checked_div_euclid(*rhs),
            ArithOp::Rem if *rhs > 0 => lhs.checked_rem_euclid(*rhs),
            ArithOp::Div | ArithOp::Rem => None,
        },
        (ExprKind::Apply(callee, _), [lhs, rhs]) if callee.name == "min" => Some(*lhs.min(rhs)),
        (ExprKind::Apply(callee, _), [lhs, rhs]) if callee.name == "max" => Some(*lhs.max(rhs)),
        _ => None,
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Formula::Poly(poly) => write!(f, "{poly}"),
            Formula::Steps { numerator, divisor } => write!(f, "({numerator}) / {divisor} + 1"),
            Formula::Written(expr) => f.write_str(&print_expr(expr)),
        }
    }
}

impl UpperBound {
    pub(super) fn new(bound: Formula) -> UpperBound {
        UpperBound { bounds: vec![bound], basis: Basis::default() }
    }

    pub(super) fn poly(poly: Poly) -> UpperBound {
        UpperBound::new(Formula::Poly(poly))
    }

    /// The polynomial, if it is one; its assumptions are added to `basis`.
    pub(super) fn as_poly(&self, basis: &mut Basis) -> Option<&Poly> {
        let [Formula::Poly(poly)] = self.bounds.as_slice() else { return None };
        basis.add(&self.basis);
        Some(poly)
    }

    /// The polynomial, if it is one and holds for all sizes.
    pub(super) fn as_plain_poly(&self) -> Option<&Poly> {
        let mut basis = Basis::default();
        self.as_poly(&mut basis).filter(|_| basis == Basis::default())
    }

    /// The minimum of both.
    pub(super) fn or(mut self, other: UpperBound) -> UpperBound {
        for bound in other.bounds {
            if !self.bounds.contains(&bound) {
                self.bounds.push(bound);
            }
        }
        self.basis.add(&other.basis);
        self
    }

    pub(super) fn value(&self, values: &Values) -> Option<i64> {
        let all: Option<Vec<i64>> = self.bounds.iter().map(|bound| bound.value(values)).collect();
        all?.into_iter().min()
    }
}

impl Basis {
    pub(super) fn add(&mut self, other: &Basis) {
        self.positive.extend(other.positive.iter().cloned());
        self.sampled |= other.sampled;
    }
}

impl fmt::Display for UpperBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bounds.as_slice() {
            [bound] => write!(f, "{bound}"),
            bounds => {
                let texts: Vec<String> = bounds.iter().map(Formula::to_string).collect();
                write!(f, "min({})", texts.join(", "))
            }
        }
    }
}
