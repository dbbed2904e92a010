//! Folds conditions and integer arithmetic that are constant for these sizes.
//!
//! A padded convolution bound to zero padding loses its guards.
//!
//! Floating-point arithmetic is never folded.

use crate::dtype::DType;
use crate::ops::{ArithOp, CompareOp, LogicOp};
use crate::program::{Expr, Index, Scalar};

pub(super) fn boolean(value: bool) -> Expr {
    Expr::Const(Scalar::integer(DType::Bool, i128::from(value)))
}

fn as_bool(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Const(scalar) if scalar.dtype() == DType::Bool => Some(scalar.as_integer() != 0),
        _ => None,
    }
}

pub(super) fn arith(op: ArithOp, lhs: Expr, rhs: Expr) -> Expr {
    if let (Expr::Const(a), Expr::Const(b)) = (&lhs, &rhs)
        && a.dtype().is_integer()
    {
        let (x, y) = (a.as_integer(), b.as_integer());
        let value = match op {
            ArithOp::Add => x + y,
            ArithOp::Sub => x - y,
            // Both have at most 64 bits; the low 64 bits of the product are exact.
            ArithOp::Mul => x.wrapping_mul(y),
            ArithOp::Div | ArithOp::Rem if y == 0 => 0,
            ArithOp::Div => x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0),
            ArithOp::Rem => x - y * (x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0)),
        };
        return Expr::Const(Scalar::integer(a.dtype(), value));
    }
    Expr::Arith(op, Box::new(lhs), Box::new(rhs))
}

pub(super) fn compare_index(op: CompareOp, lhs: Index, rhs: Index) -> Expr {
    match (lhs.as_constant(), rhs.as_constant()) {
        (Some(a), Some(b)) => boolean(op.holds(Some(a.cmp(&b)))),
        _ => Expr::CompareIndex(op, lhs, rhs),
    }
}

/// Drops only operands that are never evaluated: reads in the others may determine ranges.
pub(super) fn logic(op: LogicOp, lhs: Expr, rhs: Expr) -> Expr {
    // The left value that decides the result.
    let decides = op == LogicOp::Or;
    match (as_bool(&lhs), as_bool(&rhs)) {
        (Some(value), _) if value == decides => boolean(decides),
        (Some(_), _) => rhs,
        (_, Some(value)) if value != decides => lhs,
        _ => Expr::Logic(op, Box::new(lhs), Box::new(rhs)),
    }
}

pub(super) fn select(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    match as_bool(&condition) {
        Some(true) => then,
        Some(false) => otherwise,
        None => Expr::Select(Box::new(condition), Box::new(then), Box::new(otherwise)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_division_rounds_down() {
        let fold = |op, a, b| {
            let int = |value| Expr::Const(Scalar::integer(DType::Int32, value));
            match arith(op, int(a), int(b)) {
                Expr::Const(scalar) => scalar.as_integer(),
                other => panic!("not folded: {other:?}"),
            }
        };
        for a in -7..=7 {
            for b in -3..=3 {
                let floor = if b == 0 { 0 } else { (a as f64 / b as f64).floor() as i128 };
                assert_eq!(fold(ArithOp::Div, a, b), floor, "{a} / {b}");
                let rem = if b == 0 { 0 } else { a - b * floor };
                assert_eq!(fold(ArithOp::Rem, a, b), rem, "{a} % {b}");
            }
        }
    }
}
