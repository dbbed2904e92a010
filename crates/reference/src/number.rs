//! Typed numbers with error bounds, and their arithmetic.
//!
//! Floating-point numbers follow the rules of [`tolerance`](crate::tolerance). Integers wrap around
//! to their type after each operation. A `bool` is the integer 0 or 1; one that may differ in
//! another evaluation has error 1.

use std::cmp::Ordering;

use tensorwright_lang::builtin::{Builtin, Signature};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp, UnaryOp};

use crate::element::Value;
use crate::math;
use crate::tolerance::{Approx, Rounding, comparison_is_uncertain};

/// A typed value with an error bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number {
    dtype: DType,
    value: Value,
    error: f64,
}

impl Number {
    /// An exact value.
    pub(crate) fn from_value(dtype: DType, value: Value) -> Self {
        Self { dtype, value, error: 0.0 }
    }

    /// An exact integer, wrapped around to the type.
    pub(crate) fn integer(dtype: DType, value: i128) -> Self {
        Self::from_value(dtype, Value::Integer(value).convert(dtype))
    }

    /// An exact truth value.
    pub(crate) fn boolean(value: bool) -> Self {
        Self::from_value(DType::Bool, Value::Integer(i128::from(value)))
    }

    /// A floating-point number.
    pub(crate) fn from_approx(dtype: DType, approx: Approx) -> Self {
        Self { dtype, value: Value::Float(approx.value), error: approx.error }
    }

    /// The same value with another error bound.
    pub(crate) fn with_error(self, error: f64) -> Self {
        Self { error, ..self }
    }

    pub(crate) fn value(self) -> Value {
        self.value
    }

    pub(crate) fn error(self) -> f64 {
        self.error
    }

    /// Whether a condition holds.
    pub(crate) fn is_true(self) -> bool {
        self.value.is_true()
    }

    /// Whether another evaluation may compute another value.
    pub(crate) fn is_uncertain(self) -> bool {
        self.error > 0.0
    }

    /// As a floating-point number, whatever the type.
    pub(crate) fn approx(self) -> Approx {
        Approx { value: self.value.as_f64(), error: self.error }
    }

    /// As an integer, for subscripts. Floats, which the language does not allow here, are
    /// truncated.
    pub(crate) fn as_integer(self) -> i128 {
        match self.value {
            Value::Integer(value) => value,
            Value::Float(value) => value as i128,
        }
    }

    pub(crate) fn unary(self, op: UnaryOp) -> Self {
        match (op, self.value) {
            (UnaryOp::Not, _) => Self::boolean(!self.is_true()).with_error(self.error),
            (UnaryOp::Neg, Value::Float(_)) => Self::from_approx(self.dtype, self.approx().neg()),
            (UnaryOp::Neg, Value::Integer(value)) => self.wrapped(value.wrapping_neg(), self.error),
        }
    }

    pub(crate) fn arith(self, op: ArithOp, other: Self) -> Self {
        match (self.value, other.value) {
            (Value::Integer(a), Value::Integer(b)) => self.integer_arith(op, other, a, b),
            _ => {
                let (a, b) = (self.approx(), other.approx());
                let rounding = Rounding::operation(self.dtype);
                let result = match op {
                    ArithOp::Add => a.add(b, rounding),
                    ArithOp::Sub => a.sub(b, rounding),
                    ArithOp::Mul => a.mul(b, rounding),
                    ArithOp::Div => a.div(b, rounding),
                    ArithOp::Rem => math::fmod(a, b),
                };
                Self::from_approx(self.dtype, result)
            }
        }
    }

    fn integer_arith(self, op: ArithOp, other: Self, a: i128, b: i128) -> Self {
        let exact = self.error + other.error == 0.0;
        let (value, error) = match op {
            ArithOp::Add => (a.wrapping_add(b), self.error + other.error),
            ArithOp::Sub => (a.wrapping_sub(b), self.error + other.error),
            ArithOp::Mul => (a.wrapping_mul(b), self.approx().product_error(other.approx())),
            ArithOp::Div => (floor_div(a, b), f64::INFINITY),
            ArithOp::Rem => (floor_rem(a, b), f64::INFINITY),
        };
        self.wrapped(value, if exact { 0.0 } else { error })
    }

    /// The result of an integer operation in this type. If only some evaluations may wrap around,
    /// it is unknown.
    fn wrapped(self, value: i128, error: f64) -> Self {
        let result = Self::integer(self.dtype, value);
        if error == 0.0 {
            return result;
        }
        let inside = self.dtype.integer_range().is_some_and(|(lo, hi)| {
            let value = value as f64;
            value - error >= lo as f64 && value + error <= hi as f64
        });
        result.with_error(if inside { error } else { f64::INFINITY })
    }

    pub(crate) fn compare(self, op: CompareOp, other: Self) -> Self {
        let ordering = match (self.value, other.value) {
            (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(&b)),
            (a, b) => a.as_f64().partial_cmp(&b.as_f64()),
        };
        let uncertain = comparison_is_uncertain(self.approx(), other.approx());
        Self::boolean(op.holds(ordering)).with_error(f64::from(uncertain))
    }

    /// The lesser; NaN wins over all numbers.
    pub(crate) fn min(self, other: Self) -> Self {
        self.extreme(other, Ordering::Less, Approx::min)
    }

    /// The greater; NaN wins over all numbers.
    pub(crate) fn max(self, other: Self) -> Self {
        self.extreme(other, Ordering::Greater, Approx::max)
    }

    fn extreme(
        self,
        other: Self,
        wanted: Ordering,
        float: impl Fn(Approx, Approx) -> Approx,
    ) -> Self {
        match (self.value, other.value) {
            (Value::Integer(a), Value::Integer(b)) => {
                let winner = if a.cmp(&b) == wanted { self } else { other };
                winner.with_error(self.error.max(other.error))
            }
            _ => Self::from_approx(self.dtype, float(self.approx(), other.approx())),
        }
    }

    /// A conversion.
    pub(crate) fn cast(self, dtype: DType) -> Self {
        match self.value {
            Value::Float(_) if dtype.is_float() => {
                Self::from_approx(dtype, self.approx().store(dtype))
            }
            Value::Float(_) => self.float_to_integer(dtype),
            Value::Integer(_) if dtype.is_float() => self.integer_to_float(dtype),
            Value::Integer(value) => {
                let wrapped = Self { dtype, ..self }.wrapped(value, self.error);
                // A float near 0 or 1 is not a `bool` near it: it may be zero or not.
                let boolean = dtype == DType::Bool && self.error > 0.0;
                if boolean { wrapped.with_error(1.0) } else { wrapped }
            }
        }
    }

    /// Truncation is monotone: the largest change is at an end of the interval.
    fn float_to_integer(self, dtype: DType) -> Self {
        let Approx { value, error } = self.approx();
        let convert = |value: f64| Value::Float(value).convert(dtype);
        let result = Self::from_value(dtype, convert(value));
        if error == 0.0 {
            return result;
        }
        if error == f64::INFINITY {
            return result.with_error(f64::INFINITY);
        }
        if dtype == DType::Bool {
            return result.with_error(f64::from(value.abs() <= error));
        }
        let (down, up) = (convert(value - error), convert(value + error));
        result.with_error(result.value.distance(down).max(result.value.distance(up)))
    }

    /// Rounds once if the type is wide enough; others may round via a wider type.
    fn integer_to_float(self, dtype: DType) -> Self {
        let value = self.value.convert(dtype);
        let result = Self::from_value(dtype, value);
        let is_exact = matches!((value, self.value), (Value::Float(float), Value::Integer(integer))
            if float.abs() < 1e38 && float as i128 == integer);
        if is_exact && self.error == 0.0 {
            return result;
        }
        let rounding = Rounding::operation(dtype);
        let approx = rounding.round_ulps(value.as_f64(), self.error, 2.0 * rounding.unit);
        Self::from_approx(dtype, approx)
    }

    /// A builtin function of up to three arguments; the unused ones are ignored.
    pub(crate) fn call(builtin: Builtin, args: [Self; 3]) -> Self {
        let [x, y, z] = args;
        if let Value::Integer(value) = x.value {
            return match builtin {
                Builtin::Min => x.min(y),
                Builtin::Max => x.max(y),
                Builtin::Clamp => x.max(y).min(z),
                _ if builtin.signature() == Signature::Integer => {
                    let exact = x.error + if builtin.arity() == 2 { y.error } else { 0.0 } == 0.0;
                    let bits = x.dtype.bytes() as i128 * 8;
                    let by = if let Value::Integer(by) = y.value { by } else { 0 };
                    let value = math::bits(builtin, value, by, bits);
                    x.wrapped(value, if exact { 0.0 } else { f64::INFINITY })
                }
                // `Abs`, the only such function of integers.
                _ => x.wrapped(value.wrapping_abs(), x.error),
            };
        }
        let test =
            |holds: bool| Self::boolean(holds).with_error(f64::from(x.approx().is_unknown()));
        match builtin {
            Builtin::IsNan => test(x.value.as_f64().is_nan()),
            Builtin::IsInf => test(x.value.as_f64().is_infinite()),
            Builtin::IsFinite => test(x.value.as_f64().is_finite()),
            _ => Self::from_approx(
                x.dtype,
                math::call(builtin, x.dtype, [x.approx(), y.approx(), z.approx()]),
            ),
        }
    }

    /// This value, if another evaluation may have chosen `other` instead.
    pub(crate) fn or_else(self, other: Option<Self>) -> Self {
        let error = other.map_or(f64::INFINITY, |other| {
            self.error.max(other.error) + self.value.distance(other.value)
        });
        // Special values have no error or an infinite one.
        let special = !self.value.as_f64().is_finite() && error > 0.0;
        self.with_error(if special { f64::INFINITY } else { error })
    }

    /// The number stored in a tensor of a type.
    pub(crate) fn store(self, dtype: DType) -> Self {
        if self.dtype == dtype && !dtype.is_float() { self } else { self.cast(dtype) }
    }
}

/// The quotient rounded down; 0 if the divisor is zero.
pub(crate) fn floor_div(a: i128, b: i128) -> i128 {
    if b == 0 {
        return 0;
    }
    let quotient = a.wrapping_div(b);
    let is_inexact = a.wrapping_rem(b) != 0;
    if is_inexact && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// The remainder with the sign of `b`; 0 if `b` is zero.
pub(crate) fn floor_rem(a: i128, b: i128) -> i128 {
    if b == 0 {
        return 0;
    }
    let remainder = a.wrapping_rem(b);
    if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i128) -> Number {
        Number::integer(DType::Int32, value)
    }

    fn float(value: f64, error: f64) -> Number {
        Number::from_approx(DType::Float, Approx { value, error })
    }

    #[test]
    fn integer_division_rounds_down_and_zero_gives_zero() {
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, -3), (0, 5)] {
            let (q, r) = (floor_div(a, b), floor_rem(a, b));
            assert_eq!(q * b + r, a);
            assert_eq!(q, (a as f64 / b as f64).floor() as i128);
            assert!(r == 0 || (r < 0) == (b < 0));
        }
        assert_eq!(int(5).arith(ArithOp::Div, int(0)), int(0));
        assert_eq!(int(5).arith(ArithOp::Rem, int(0)), int(0));
        let (least, minus_one) = (int(i128::from(i32::MIN)), int(-1));
        assert_eq!(least.arith(ArithOp::Div, minus_one), least, "wraps around");
        assert_eq!(least.unary(UnaryOp::Neg), least);
        assert_eq!(Number::call(Builtin::Abs, [least; 3]), least);
    }

    #[test]
    fn integers_wrap_to_their_type() {
        let byte = |value| Number::integer(DType::UInt8, value);
        assert_eq!(byte(200).arith(ArithOp::Add, byte(100)), byte(44));
        assert_eq!(byte(3).arith(ArithOp::Sub, byte(5)), byte(254));
        let large = Number::integer(DType::UInt64, i128::from(u64::MAX));
        assert_eq!(large.arith(ArithOp::Mul, large), Number::integer(DType::UInt64, 1));
    }

    #[test]
    fn comparisons_carry_their_uncertainty() {
        let near = float(1.0, 0.1).compare(CompareOp::Lt, float(1.05, 0.0));
        assert!(near.is_true() && near.is_uncertain());
        assert!(near.unary(UnaryOp::Not).is_uncertain());
        assert!(!float(1.0, 0.1).compare(CompareOp::Lt, float(2.0, 0.0)).is_uncertain());
        let nan = float(f64::NAN, 0.0);
        assert!(!nan.compare(CompareOp::Eq, nan).is_true());
        assert!(nan.compare(CompareOp::Ne, nan).is_true());
        assert!(int(3).compare(CompareOp::Ge, int(3)).is_true());
    }

    #[test]
    fn choices_that_may_go_either_way_span_both() {
        let (a, b) = (float(1.0, 0.1), float(3.0, 0.2));
        assert_eq!(a.or_else(Some(b)).error(), 2.2);
        assert_eq!(a.or_else(None).error(), f64::INFINITY);
        let nan = float(f64::NAN, 0.0);
        assert_eq!(nan.or_else(Some(nan)).error(), 0.0);
        assert_eq!(nan.or_else(Some(a)).error(), f64::INFINITY);
    }

    #[test]
    fn conversions_carry_errors() {
        assert_eq!(float(2.5, 0.4).cast(DType::Int32), int(2));
        assert_eq!(float(2.5, 0.6).cast(DType::Int32), int(2).with_error(1.0));
        assert_eq!(float(1e30, 1e20).cast(DType::Int32), int(i128::from(i32::MAX)));
        assert_eq!(int(3).cast(DType::Float), float(3.0, 0.0));
        let inexact = int((1 << 24) + 1).cast(DType::Float);
        assert!(inexact.error() >= 1.0 && inexact.error() < 5.0, "{inexact:?}");
        let uncertain = int(5).with_error(2.0).arith(ArithOp::Mul, int(3));
        assert_eq!(uncertain.error(), 6.0);
        assert_eq!(int(5).with_error(2.0).arith(ArithOp::Div, int(2)).error(), f64::INFINITY);
        let edge = int(i128::from(i32::MAX)).with_error(1.0).arith(ArithOp::Add, int(0));
        assert_eq!(edge.error(), f64::INFINITY, "another evaluation may wrap around");
        assert_eq!(float(0.3, 0.5).cast(DType::Bool).error(), 1.0);
    }
}
