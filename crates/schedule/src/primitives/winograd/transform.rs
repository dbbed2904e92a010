//! Multiplies a tensor by a small constant matrix, fully unrolled.
//!
//! The result is a selection by row of linear combinations. Once the loop over rows is unrolled,
//! every statement is one combination with constant coefficients; zeros and ones are gone.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, UnaryOp};
use tensorwright_lang::program::{Expr, Index, Scalar};

use super::matrices::Matrix;
use crate::refusal::Refusal;

/// The product of row `row` of a matrix with the vector of elements `element`.
pub(super) fn product(
    matrix: &Matrix,
    dtype: DType,
    row: &Index,
    element: &dyn Fn(usize) -> Result<Expr, Refusal>,
) -> Result<Expr, Refusal> {
    let mut chosen: Option<Expr> = None;
    for (number, coefficients) in matrix.iter().enumerate().rev() {
        let value = combination(coefficients, dtype, element)?;
        chosen = Some(match chosen {
            None => value,
            Some(others) => {
                let here = Index::constant(number as i64);
                let is_row = Expr::CompareIndex(CompareOp::Eq, row.clone(), here);
                Expr::Select(Box::new(is_row), Box::new(value), Box::new(others))
            }
        });
    }
    Ok(chosen.unwrap_or_else(|| constant(dtype, 0.0)))
}

/// A linear combination, with even and odd elements separate: rows for opposite points only differ
/// in the sign of the odd ones, so compilers compute each part once.
fn combination(
    coefficients: &[f64],
    dtype: DType,
    element: &dyn Fn(usize) -> Result<Expr, Refusal>,
) -> Result<Expr, Refusal> {
    let even = sum(coefficients, 0, dtype, element)?;
    let odd = sum(coefficients, 1, dtype, element)?;
    Ok(match (even, odd) {
        (Some((a, true)), Some((b, true))) => arith(ArithOp::Add, a, b),
        (Some((a, true)), Some((b, false))) => arith(ArithOp::Sub, a, b),
        (Some((a, false)), Some((b, true))) => arith(ArithOp::Sub, b, a),
        (Some((a, false)), Some((b, false))) => {
            Expr::Unary(UnaryOp::Neg, Box::new(arith(ArithOp::Add, a, b)))
        }
        (Some((a, true)), None) | (None, Some((a, true))) => a,
        (Some((a, false)), None) | (None, Some((a, false))) => {
            Expr::Unary(UnaryOp::Neg, Box::new(a))
        }
        (None, None) => constant(dtype, 0.0),
    })
}

/// Every second term of a combination, with the sign normalized so that the first one is positive,
/// and whether it was.
fn sum(
    coefficients: &[f64],
    from: usize,
    dtype: DType,
    element: &dyn Fn(usize) -> Result<Expr, Refusal>,
) -> Result<Option<(Expr, bool)>, Refusal> {
    let mut made: Option<(Expr, bool)> = None;
    for (number, factor) in coefficients.iter().enumerate().skip(from).step_by(2) {
        if *factor == 0.0 {
            continue;
        }
        let size = factor.abs();
        let term = element(number)?;
        let term =
            if size == 1.0 { term } else { arith(ArithOp::Mul, constant(dtype, size), term) };
        let positive = *factor > 0.0;
        made = Some(match made {
            None => (term, positive),
            Some((sum, sign)) if sign == positive => (arith(ArithOp::Add, sum, term), sign),
            Some((sum, sign)) => (arith(ArithOp::Sub, sum, term), sign),
        });
    }
    Ok(made)
}

fn arith(op: ArithOp, a: Expr, b: Expr) -> Expr {
    Expr::Arith(op, Box::new(a), Box::new(b))
}

pub(super) fn constant(dtype: DType, value: f64) -> Expr {
    Expr::Const(Scalar::float(dtype, value))
}
