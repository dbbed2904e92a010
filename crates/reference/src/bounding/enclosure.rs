//! Values with error bounds: arithmetic and rounding.
//!
//! The rules are those of [`tolerance`](crate::tolerance).

use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, LogicOp};
use tensorwright_lang::program::Expr;

use super::build::{
    abs, add, both, call, compare, div, infinity, known, mul, number, scaled, select, size, sub,
    unless,
};
use crate::tolerance::Rounding;

/// A value and its error bound.
#[derive(Debug, Clone)]
pub(super) struct Enclosure {
    /// The type in the program.
    pub(super) dtype: DType,
    /// A `double` for floating-point types, the type itself for others.
    pub(super) value: Expr,
    /// A `double`; `None` if every evaluation has this value, and the type represents it.
    pub(super) error: Option<Expr>,
}

/// A value whose error is `relative |value| + absolute + error`; unbounded where the value is
/// large.
pub(super) struct Term {
    pub(super) value: Expr,
    pub(super) relative: f64,
    pub(super) absolute: f64,
    pub(super) error: Option<Expr>,
}

/// The result of rounding a value with an error to a type.
pub(super) fn rounded(
    value: &Expr,
    error: Option<Expr>,
    relative: f64,
    rounding: Rounding,
) -> Expr {
    rounded_or(value, error, relative, rounding, infinity())
}

/// As [`rounded`], with a term to add to the error where the value is near the ends of the type's
/// range.
pub(super) fn rounded_or(
    value: &Expr,
    error: Option<Expr>,
    relative: f64,
    rounding: Rounding,
    otherwise: Expr,
) -> Expr {
    let magnitude = abs(value);
    let inside = compare(CompareOp::Lt, magnitude.clone(), number(rounding.largest / 2.0));
    let own = add(scaled(relative, magnitude), number(rounding.underflow));
    let own = select(inside, own, otherwise);
    match error {
        Some(error) => add(bounded(scaled(1.0 + relative, error), rounding), own),
        None => own,
    }
}

/// The error, or infinity where it reaches half of the type's largest number: the product may then
/// overflow.
fn bounded(error: Expr, rounding: Rounding) -> Expr {
    let scale = 2_f64.powi(1024 - rounding.largest.log2().ceil() as i32);
    if scale == 1.0 { error } else { scaled(1.0 / scale, scaled(scale, error)) }
}

/// The value as a `double`; floating-point values already are.
pub(super) fn as_double(value: Expr, dtype: DType) -> Expr {
    if dtype.is_float() { value } else { Expr::Cast(DType::Double, Box::new(value)) }
}

/// Arithmetic on floating-point numbers.
pub(super) fn arith(op: ArithOp, a: Enclosure, b: Enclosure) -> Term {
    let Rounding { unit, underflow, .. } = Rounding::operation(a.dtype);
    let value = Expr::Arith(op, Box::new(a.value.clone()), Box::new(b.value.clone()));
    let error = match op {
        ArithOp::Add | ArithOp::Sub => both(a.error, b.error),
        ArithOp::Mul => product_error(a, b),
        ArithOp::Div => quotient_error(&value, a, b),
        // The remainder of exact numbers is exact.
        ArithOp::Rem => both(a.error, b.error).map(|_| infinity()),
    };
    Term { value, relative: unit, absolute: underflow, error }
}

/// `|a| eb + ea (|b| + eb)`; the larger error is written once.
pub(super) fn product_error(a: Enclosure, b: Enclosure) -> Option<Expr> {
    match (a.error, b.error) {
        (None, None) => None,
        (None, Some(error)) => Some(mul(abs(&a.value), error)),
        (Some(error), None) => Some(mul(abs(&b.value), error)),
        (Some(error_a), Some(error_b)) => {
            let (once, its, twice, other) = if size(&error_a) >= size(&error_b) {
                (error_a, a.value, error_b, b.value)
            } else {
                (error_b, b.value, error_a, a.value)
            };
            let rest = mul(once, add(abs(&other), twice.clone()));
            Some(add(mul(abs(&its), twice), rest))
        }
    }
}

/// `(ea + |a / b| eb) / (|b| - eb)`, infinite if `b` may be zero.
fn quotient_error(value: &Expr, a: Enclosure, b: Enclosure) -> Option<Expr> {
    let magnitude = abs(&b.value);
    let Some(error_b) = b.error else {
        return Some(div(a.error?, magnitude));
    };
    let error_b = known(error_b);
    let moved = mul(call(Builtin::Abs, vec![value.clone()]), error_b.clone());
    let divisor = sub(magnitude, error_b);
    let above = both(a.error, Some(moved)).unwrap_or_else(infinity);
    // A divisor that may be zero gives a negative or undefined bound.
    let quotient = div(above, divisor.clone());
    Some(add(quotient, unless(compare(CompareOp::Gt, divisor, number(0.0)))))
}

/// The largest integer up to which all are exact in a type.
pub(super) fn exact_integers(dtype: DType) -> f64 {
    dtype.unit_roundoff().map_or(0.0, |unit| 1.0 / unit)
}

/// An integer, as a `double`, that is converted to a type.
pub(super) fn from_integer(value: Expr, error: Option<Expr>, dtype: DType) -> (Expr, Option<Expr>) {
    let rounding = Rounding::operation(dtype);
    let exact = compare(CompareOp::Le, abs(&value), number(exact_integers(dtype)));
    let own = rounded(&value, None, 2.0 * rounding.unit, rounding);
    let error = both(error, Some(select(exact, number(0.0), own)));
    (value, error)
}

/// The error of an integer, infinite where another evaluation may wrap around.
pub(super) fn near(value: &Expr, error: Expr, dtype: DType) -> Expr {
    let (lo, hi) = dtype.integer_range().unwrap_or_default();
    let value = as_double(value.clone(), dtype);
    // Far from the ends; 64 bits of integers are not exact in `double`.
    let margin = add(scaled(2.0, error.clone()), number(if hi > 1 << 40 { 4096.0 } else { 0.0 }));
    let above = compare(CompareOp::Ge, sub(value.clone(), margin.clone()), number(lo as f64));
    let below = compare(CompareOp::Le, add(value, margin), number(hi as f64));
    let inside = Expr::Logic(LogicOp::And, Box::new(above), Box::new(below));
    select(inside, error.clone(), unless(compare(CompareOp::Eq, error, number(0.0))))
}
