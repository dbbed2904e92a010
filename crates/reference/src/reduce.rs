//! Reductions: folding terms into a value with an error bound.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, ReductionOp};

use crate::number::Number;
use crate::tolerance::{Approx, Rounding};

/// A partial reduction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Accumulator {
    /// A floating-point sum.
    Sum(Sum, DType),
    /// A floating-point product.
    Product(Product, DType),
    /// A minimum or maximum of any type, or an integer sum or product: exact step by step.
    Fold(ReductionOp, Number),
}

impl Accumulator {
    /// The reduction of no terms.
    pub(crate) fn neutral(op: ReductionOp, dtype: DType) -> Self {
        match op {
            ReductionOp::Sum if dtype.is_float() => Accumulator::Sum(Sum::default(), dtype),
            ReductionOp::Product if dtype.is_float() => {
                Accumulator::Product(Product::default(), dtype)
            }
            op => Accumulator::Fold(op, neutral_element(op, dtype)),
        }
    }

    /// Adds a term.
    pub(crate) fn push(&mut self, term: Number) {
        match self {
            Accumulator::Sum(sum, _) => sum.push(term.approx()),
            Accumulator::Product(product, _) => product.push(term.approx()),
            Accumulator::Fold(op, folded) => {
                *folded = match op {
                    ReductionOp::Sum => folded.arith(ArithOp::Add, term),
                    ReductionOp::Product => folded.arith(ArithOp::Mul, term),
                    ReductionOp::Min => folded.min(term),
                    ReductionOp::Max => folded.max(term),
                };
            }
        }
    }

    /// The result.
    pub(crate) fn finish(self) -> Number {
        match self {
            Accumulator::Sum(sum, dtype) => {
                Number::from_approx(dtype, sum.finish(Rounding::accumulation(dtype)))
            }
            Accumulator::Product(product, dtype) => {
                Number::from_approx(dtype, product.finish(Rounding::accumulation(dtype)))
            }
            Accumulator::Fold(_, folded) => folded,
        }
    }
}

/// The neutral element: infinities for floats, the ends of the range for integers.
fn neutral_element(op: ReductionOp, dtype: DType) -> Number {
    let integer = |value| Number::integer(dtype, value);
    match (op, dtype.integer_range()) {
        (ReductionOp::Sum, _) => integer(0),
        (ReductionOp::Product, _) => integer(1),
        (ReductionOp::Min, Some((_, largest))) => integer(largest),
        (ReductionOp::Max, Some((smallest, _))) => integer(smallest),
        (ReductionOp::Min, None) => Number::from_approx(dtype, Approx::exact(f64::INFINITY)),
        (ReductionOp::Max, None) => Number::from_approx(dtype, Approx::exact(f64::NEG_INFINITY)),
    }
}

/// A sum in `f64` with Neumaier's compensation, so that the reference errs by little more than one
/// rounding at any length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    sum: f64,
    compensation: f64,
    terms: u64,
    /// `Σ (|vi| + ei)` over the finite terms.
    magnitude: f64,
    /// `Σ ei`.
    error: f64,
}

impl Sum {
    fn push(&mut self, term: Approx) {
        let Approx { value, error } = term;
        let sum = self.sum + value;
        self.compensation += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
        self.terms += 1;
        self.error += error;
        if value.is_finite() {
            self.magnitude += value.abs() + error;
        }
    }

    fn finish(self, rounding: Rounding) -> Approx {
        // Once a term is infinite or NaN the compensation is meaningless, and the sum is exact.
        let value = if self.sum.is_finite() { self.sum + self.compensation } else { self.sum };
        // Adding the first term to zero is exact.
        let relative = self.terms.saturating_sub(1) as f64 * rounding.unit;
        let roundings = relative / (1.0 + relative) * self.magnitude;
        // Some order has partial sums as large as the sum of magnitudes.
        if self.error == f64::INFINITY || self.magnitude + roundings > rounding.largest {
            return Approx::unknown(value);
        }
        if !value.is_finite() {
            return Approx::exact(value);
        }
        Approx { value, error: self.error + roundings }
    }
}

/// A product in `f64`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product {
    value: f64,
    terms: u64,
    /// `Π (|vi| + ei)`: a bound on the product.
    magnitude: f64,
    /// The largest and the smallest partial product.
    largest: f64,
    smallest: f64,
    /// Whether a term is zero in every evaluation.
    has_zero: bool,
    is_special: bool,
    is_unknown: bool,
}

impl Default for Product {
    fn default() -> Self {
        Self {
            value: 1.0,
            terms: 0,
            magnitude: 1.0,
            largest: 1.0,
            smallest: 1.0,
            has_zero: false,
            is_special: false,
            is_unknown: false,
        }
    }
}

impl Product {
    fn push(&mut self, term: Approx) {
        let Approx { value, error } = term;
        self.value *= value;
        self.terms += 1;
        self.magnitude *= value.abs() + error;
        self.largest *= (value.abs() + error).max(1.0);
        if value != 0.0 {
            self.smallest *= (value.abs() - error).clamp(0.0, 1.0);
        }
        self.has_zero |= value == 0.0 && error == 0.0;
        self.is_special |= !value.is_finite();
        // An infinity times what may or may not be zero; see `finish`.
        self.is_unknown |= term.is_unknown() || !term.sign_is_known();
    }

    fn finish(self, rounding: Rounding) -> Approx {
        let Self { value, magnitude, .. } = self;
        if self.is_special {
            return if self.is_unknown { Approx::unknown(value) } else { Approx::exact(value) };
        }
        let nu = self.terms as f64 * rounding.unit;
        let growth = if nu < 1.0 { 1.0 / (1.0 - nu) } else { f64::INFINITY };
        let mut error = magnitude * growth - value.abs();
        if self.smallest < rounding.underflow {
            // Some order underflows in a partial product before large terms follow.
            error += self.terms as f64 * rounding.underflow * self.largest;
        }
        // Without such a term a zero is our underflow, which another order may not have.
        if self.has_zero && self.largest <= rounding.largest {
            return Approx::exact(value);
        }
        if error.is_nan() || !value.is_finite() || self.largest * growth > rounding.largest {
            return Approx::unknown(value);
        }
        Approx { value, error: error.max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Value;

    fn reduce(op: ReductionOp, dtype: DType, terms: &[f64]) -> Number {
        let mut accumulator = Accumulator::neutral(op, dtype);
        for term in terms {
            accumulator.push(Number::from_value(dtype, Value::Float(*term).convert(dtype)));
        }
        accumulator.finish()
    }

    #[test]
    fn neutral_elements() {
        let value = |op, dtype| reduce(op, dtype, &[]).value();
        assert_eq!(value(ReductionOp::Sum, DType::Float), Value::Float(0.0));
        assert_eq!(value(ReductionOp::Product, DType::Double), Value::Float(1.0));
        assert_eq!(value(ReductionOp::Min, DType::Half), Value::Float(f64::INFINITY));
        assert_eq!(value(ReductionOp::Max, DType::Float), Value::Float(f64::NEG_INFINITY));
        assert_eq!(value(ReductionOp::Min, DType::Int8), Value::Integer(127));
        assert_eq!(value(ReductionOp::Max, DType::UInt64), Value::Integer(0));
        assert_eq!(value(ReductionOp::Min, DType::Bool), Value::Integer(1));
        assert_eq!(value(ReductionOp::Max, DType::Bool), Value::Integer(0));
    }

    #[test]
    fn sums_of_doubles_are_compensated() {
        let sum = reduce(ReductionOp::Sum, DType::Double, &[1.0, 1e100, 1.0, -1e100]);
        assert_eq!(sum.value(), Value::Float(2.0));
        assert!(sum.error() > 1e80, "another order loses everything: {}", sum.error());
    }

    #[test]
    fn sums_in_any_order_stay_within_the_bound() {
        let terms: Vec<f64> =
            (0..1000_i32).map(|i| f64::from(((i * 7919) % 1009) as f32 / 1009.0 - 0.5)).collect();
        let sum = reduce(ReductionOp::Sum, DType::Float, &terms);
        let forwards: f32 = terms.iter().map(|x| *x as f32).sum();
        let backwards: f32 = terms.iter().rev().map(|x| *x as f32).sum();
        let tree: f32 = terms.chunks(8).map(|c| c.iter().map(|x| *x as f32).sum::<f32>()).sum();
        for other in [forwards, backwards, tree] {
            assert!((f64::from(other) - sum.value().as_f64()).abs() <= sum.error());
        }
        assert!(sum.error() < 0.02, "1000 u Σ|v| = {}", sum.error());
        let missing = sum.value().as_f64() - terms[1];
        assert!((missing - sum.value().as_f64()).abs() > sum.error(), "a lost term shows");
    }

    #[test]
    fn long_sums_may_stagnate_but_not_vanish() {
        // Sequential summation of ones in `float` stops at 2^24.
        for exponent in [20, 24, 25, 30, 40] {
            let terms = 1_u64 << exponent;
            let magnitude = terms as f64;
            let sum = Sum { sum: magnitude, terms, magnitude, ..Sum::default() };
            let Approx { value, error } = sum.finish(Rounding::accumulation(DType::Float));
            let one_by_one = magnitude.min(2_f64.powi(24));
            assert!((value - one_by_one).abs() <= error, "2^{exponent}: {error}");
            assert!(error < value, "2^{exponent}: nothing is no sum of ones");
        }
    }

    #[test]
    fn special_terms_decide_sums_and_products() {
        let inf = f64::INFINITY;
        let sum = reduce(ReductionOp::Sum, DType::Float, &[1.0, inf, 2.0]);
        assert_eq!((sum.value(), sum.error()), (Value::Float(inf), 0.0));
        let none = reduce(ReductionOp::Sum, DType::Float, &[inf, -inf, 2.0]);
        assert!(none.value().as_f64().is_nan() && none.error() == 0.0);
        let large = reduce(ReductionOp::Sum, DType::Float, &[3e38, 3e38, -3e38]);
        assert_eq!(large.error(), inf, "one order overflows in float");
        let product = reduce(ReductionOp::Product, DType::Float, &[2.0, inf, -1.0]);
        assert_eq!((product.value(), product.error()), (Value::Float(-inf), 0.0));
        let zero = reduce(ReductionOp::Product, DType::Float, &[2.0, 0.0, 5.0]);
        assert_eq!((zero.value(), zero.error()), (Value::Float(0.0), 0.0));
    }

    #[test]
    fn products_stay_within_the_bound() {
        let terms: Vec<f64> = (0..200_i32).map(|i| f64::from(0.9 + 0.001 * i as f32)).collect();
        let product = reduce(ReductionOp::Product, DType::Float, &terms);
        let other: f32 = terms.iter().map(|x| *x as f32).product();
        let difference = (f64::from(other) - product.value().as_f64()).abs();
        assert!(difference <= product.error(), "{difference} {}", product.error());
        let relative = product.error() / product.value().as_f64();
        assert!(relative < 300.0 * 2_f64.powi(-24), "{relative}");
        let tiny = reduce(ReductionOp::Product, DType::Float, &[1e-30, 1e-30, 1e30, 1e30]);
        assert!(tiny.error() > 1.0, "one order underflows in float");
        let lost = reduce(ReductionOp::Product, DType::Double, &[1e-200, 1e-200, 1e100]);
        let kept = 1e-200 * 1e100 * 1e-200;
        assert!(kept > 0.0 && lost.error() >= kept, "another order does not underflow: {lost:?}");
    }

    #[test]
    fn integers_wrap_and_nan_wins_over_numbers() {
        let wrapped = reduce(ReductionOp::Sum, DType::Int8, &[100.0, 100.0]);
        assert_eq!(wrapped.value(), Value::Integer(-56));
        for terms in [[f64::NAN, 3.0], [3.0, f64::NAN], [f64::NAN, f64::NAN]] {
            let least = reduce(ReductionOp::Min, DType::Float, &terms);
            assert!(least.value().as_f64().is_nan() && least.error() == 0.0);
        }
    }
}
