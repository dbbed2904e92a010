//! Tolerances of correct evaluations, by running error analysis.
//!
//! Alongside every number `v` the interpreter carries a bound `e` such that **any** evaluation of
//! the same stages in their declared types ends within `e` of `v`: with sums in any order, with
//! or without fused multiply-add, in the declared precision or a wider one. This is the running
//! error analysis of Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.3, for
//! two evaluations at once, ours and another one. Nothing in it is tuned: a bound derives from
//! the values, the unit roundoff `u` of the types and the lengths of the reductions.
//!
//! | what | bound |
//! | --- | --- |
//! | input, constant | 0 |
//! | `a + b`, `a - b` | `ea + eb`, rounded |
//! | `a * b` | `\|a\| eb + \|b\| ea + ea eb`, rounded |
//! | `a / b` | `(ea + \|a/b\| eb) / (\|b\| - eb)`, rounded; unknown if `b` may be zero |
//! | sum of n terms | `Σ ei + ku / (1 + ku) Σ (\|vi\| + ei)` with `k = n - 1` |
//! | product of n terms | `(1 + γn) Π (\|vi\| + ei) - Π \|vi\|` with `γn = n u / (1 - n u)` |
//! | `min`, `max` | the error of the operand that wins, or the larger one if either may win |
//! | function `f(a)` | `max \|f(a ± ea) - f(a)\|`, plus 4 ulp (see [`math`](crate::math)) |
//! | comparison | uncertain if `\|a - b\| <= ea + eb` and the errors are not 0 |
//! | `c ? a : b`, `c` uncertain | `max(ea, eb) + \|a - b\|`; unknown if the other branch fails |
//! | float to integer | `max \|trunc(a ± ea) - trunc(a)\|` |
//! | store | 0 if `e` is 0 and the value is representable, else `e`, rounded by both |
//!
//! "Rounded" adds `u (|v| + e)` for the rounding of the other evaluation, and an underflow term.
//! *Unknown* is an infinite bound, which every result satisfies: a value that may overflow or be
//! NaN in only one of the evaluations cannot be verified. A value that is infinite or NaN has bound
//! 0 (every evaluation computes it) or is unknown.
//!
//! For sums in any order the factor is `ku / (1 + ku)` with `k = n - 1`, rather than `γn` or `ku`
//! (Mascarenhas, "Floating point numbers are real numbers", 2016; Lange and Rump, "Sharp estimates
//! for perturbation errors in summations", 2019). They prove it for `n` well below `1 / u`; we use
//! it for every `n`, because `ku` alone accepts an empty sum from `1 / u` terms on (2^24 in
//! `float`). For terms of one sign the loss is bounded in this way for every `n`: no partial sum
//! exceeds the result `r`, so `s - r <= k u r`, and `s - r <= ku / (1 + ku) s`. So a sum of 2^25
//! ones may be 2^24, the result of sequential summation in `float`; it may not be 0.
//!
//! The reference computes in `f64`, so its own roundoff counts too: `u` here is that of the type
//! plus that of `double`, which for `double` itself is twice the unit roundoff.
//!
//! **`half` and `bfloat16`.** Most code computes on them in `float` and rounds when it stores;
//! some targets have native arithmetic that rounds each operation to the type. The bound of an
//! operation uses the `u` of the type, which is the larger and so covers both. Reductions are
//! different: with the `u` of `bfloat16`, a sum of 256 terms would be allowed to be wholly wrong.
//! Every code generator has to accumulate them in `float` or wider, and the bound says so.
//!
//! Integers are exact: their bound is 0 unless they come from an uncertain conversion or
//! comparison.

use tensorwright_lang::dtype::{DType, FloatFormat};

use crate::element::Value;

/// A floating-point value and the bound on its error.
///
/// Invariant: the error is not negative and not NaN, and if the value is infinite or NaN then the
/// error is 0 or infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Approx {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

/// The error of one rounding to a type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounding {
    /// The relative error.
    pub(crate) unit: f64,
    /// The absolute error of a result that underflows.
    pub(crate) underflow: f64,
    /// The largest finite value.
    pub(crate) largest: f64,
}

impl Rounding {
    /// The rounding of an operation on a type, by us and by another evaluation.
    pub(crate) fn operation(dtype: DType) -> Self {
        let double = f64::EPSILON / 2.0;
        let unit = dtype.unit_roundoff().unwrap_or(double) + double;
        // Integers converted to floats are computed in `double`.
        let format = dtype.float_format().unwrap_or(FloatFormat::BINARY64);
        // With the exponent range of `float`, subnormal results may be flushed to zero: the
        // conversion instructions for `bfloat16` do it. No hardware does it for `half`.
        let is_flushed = format.exponent_bits >= FloatFormat::BINARY32.exponent_bits;
        let underflow =
            if is_flushed { format.least_normal() } else { format.least_subnormal() / 2.0 };
        Self { unit, underflow, largest: format.largest() }
    }

    /// The rounding of each step of a reduction: that of `float` for narrower types.
    pub(crate) fn accumulation(dtype: DType) -> Self {
        Self::operation(dtype.computed_in())
    }

    /// A finite result of finite operands, with the error propagated from the operands.
    pub(crate) fn round(self, value: f64, propagated: f64) -> Approx {
        self.round_ulps(value, propagated, self.unit)
    }

    /// As [`Rounding::round`], for a function that is less accurate than one rounding.
    pub(crate) fn round_ulps(self, value: f64, propagated: f64, relative: f64) -> Approx {
        if value == 0.0 && propagated == 0.0 {
            return Approx::exact(value);
        }
        let error = propagated + relative * (value.abs() + propagated) + self.underflow;
        if value.abs() + error > self.largest || error.is_nan() || !value.is_finite() {
            return Approx::unknown(value);
        }
        Approx { value, error }
    }
}

impl Approx {
    /// A value that every evaluation computes exactly.
    pub(crate) fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }

    /// A value without a bound.
    pub(crate) fn unknown(value: f64) -> Self {
        Self { value, error: f64::INFINITY }
    }

    /// Whether there is no bound.
    pub(crate) fn is_unknown(self) -> bool {
        self.error == f64::INFINITY
    }

    /// Whether every evaluation computes this infinity or NaN.
    fn is_special(self) -> bool {
        !self.value.is_finite() && !self.is_unknown()
    }

    /// Whether every evaluation computes this sign (or this zero).
    pub(crate) fn sign_is_known(self) -> bool {
        self.error == 0.0 || self.value.abs() > self.error
    }

    pub(crate) fn neg(self) -> Self {
        Self { value: -self.value, ..self }
    }

    pub(crate) fn add(self, other: Self, rounding: Rounding) -> Self {
        let value = self.value + other.value;
        let error = self.error + other.error;
        if error == f64::INFINITY {
            Self::unknown(value)
        } else if self.is_special() || other.is_special() {
            // An infinity absorbs whatever is finite.
            Self::exact(value)
        } else {
            rounding.round(value, error)
        }
    }

    pub(crate) fn sub(self, other: Self, rounding: Rounding) -> Self {
        self.add(other.neg(), rounding)
    }

    /// The propagated error of the product, before rounding.
    pub(crate) fn product_error(self, other: Self) -> f64 {
        self.value.abs() * other.error + other.value.abs() * self.error + self.error * other.error
    }

    pub(crate) fn mul(self, other: Self, rounding: Rounding) -> Self {
        let value = self.value * other.value;
        if self.is_unknown() || other.is_unknown() {
            Self::unknown(value)
        } else if self.is_special() || other.is_special() {
            // Infinity times a possible zero may be NaN; NaN stays NaN.
            let known = self.sign_is_known() && other.sign_is_known();
            let is_nan = self.value.is_nan() || other.value.is_nan();
            if known || is_nan { Self::exact(value) } else { Self::unknown(value) }
        } else {
            rounding.round(value, self.product_error(other))
        }
    }

    pub(crate) fn div(self, other: Self, rounding: Rounding) -> Self {
        let value = self.value / other.value;
        if self.is_unknown() || other.is_unknown() {
            return Self::unknown(value);
        }
        if other.is_special() {
            return Self::exact(value);
        }
        if self.is_special() || other.value == 0.0 {
            let known = self.sign_is_known() && other.sign_is_known();
            return if known || self.value.is_nan() {
                Self::exact(value)
            } else {
                Self::unknown(value)
            };
        }
        let divisor = other.value.abs() - other.error;
        if divisor <= 0.0 {
            return Self::unknown(value);
        }
        rounding.round(value, (self.error + value.abs() * other.error) / divisor)
    }

    /// Whether every evaluation computes NaN.
    fn is_nan(self) -> bool {
        self.value.is_nan() && !self.is_unknown()
    }

    /// The lesser; NaN wins over all numbers, even unknown ones.
    pub(crate) fn min(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() {
            return Self::exact(f64::NAN);
        }
        self.fmin(other)
    }

    /// The greater; NaN wins over all numbers.
    pub(crate) fn max(self, other: Self) -> Self {
        self.neg().min(other.neg()).neg()
    }

    /// The lesser; a number wins over NaN.
    pub(crate) fn fmin(self, other: Self) -> Self {
        if self.is_unknown() || other.is_unknown() {
            return Self::unknown(self.value.min(other.value));
        }
        if self.value.is_nan() || self.value - self.error > other.value + other.error {
            return other;
        }
        if other.value.is_nan() || self.value + self.error < other.value - other.error {
            return self;
        }
        let error = self.error.max(other.error);
        Self { value: self.value.min(other.value), error }
    }

    /// The greater; a number wins over NaN.
    pub(crate) fn fmax(self, other: Self) -> Self {
        self.neg().fmin(other.neg()).neg()
    }

    /// The value rounded to a type, by us and by another evaluation: a store or a conversion.
    pub(crate) fn store(self, dtype: DType) -> Self {
        let stored = Value::Float(self.value).convert(dtype).as_f64();
        if self.is_unknown() {
            return Self::unknown(stored);
        }
        if self.error == 0.0 && (stored == self.value || stored.is_nan()) {
            return Self::exact(stored);
        }
        let rounding = Rounding::operation(dtype);
        if stored.is_infinite() {
            // Certain if every other evaluation overflows too.
            let overflows =
                self.value.abs() - self.error > rounding.largest * (1.0 + rounding.unit);
            return if overflows { Self::exact(stored) } else { Self::unknown(stored) };
        }
        let ours = (self.value - stored).abs();
        let Self { error, .. } = rounding.round(self.value, self.error);
        // The bounds have rounding errors of their own, far below this margin.
        Self { value: stored, error: (error + ours) * (1.0 + 1e-9) }
    }
}

/// Whether a comparison of two numbers may differ in another evaluation.
pub(crate) fn comparison_is_uncertain(a: Approx, b: Approx) -> bool {
    let error = a.error + b.error;
    // Special values are certain; their difference is infinite or NaN, and neither is `<=`.
    error > 0.0 && (error == f64::INFINITY || (a.value - b.value).abs() <= error)
}

#[cfg(test)]
mod tests {
    use tensorwright_random::SplitMix;

    use super::*;

    const FLOAT: DType = DType::Float;

    fn float() -> Rounding {
        Rounding::operation(FLOAT)
    }

    /// Pseudo-random floats in [-1, 1).
    fn numbers() -> impl Iterator<Item = f32> {
        let mut random = SplitMix::new(1);
        std::iter::from_fn(move || Some((random.next_u64() >> 40) as f32 / (1 << 23) as f32 - 1.0))
    }

    #[test]
    fn bounds_hold_for_evaluation_in_float() {
        let mut numbers = numbers();
        let mut next = || numbers.next().unwrap();
        for _ in 0..10_000 {
            let [a, b, c, d] = [next(), next(), next(), next()];
            let exact = |x: f32| Approx::exact(f64::from(x));
            // (a * b - c) / d, in float with and without fused multiply-add.
            let approx = exact(a)
                .mul(exact(b), float())
                .sub(exact(c), float())
                .div(exact(d), float())
                .store(FLOAT);
            for other in [(a * b - c) / d, a.mul_add(b, -c) / d] {
                let difference = (f64::from(other) - approx.value).abs();
                assert!(difference <= approx.error, "{a} {b} {c} {d}: {other} {approx:?}");
            }
            let scale = ((a * b).abs() + c.abs()) / d.abs();
            assert!(approx.error <= 8.0 * f64::from(scale) * 2_f64.powi(-24), "useful: {approx:?}");
        }
    }

    #[test]
    fn infinities_absorb_and_overflow_is_unknown() {
        let inf = Approx::exact(f64::INFINITY);
        let about = |value: f64| Approx { value, error: 0.5 };
        assert_eq!(inf.neg().sub(about(3.0), float()), inf.neg());
        assert!(inf.sub(inf, float()).value.is_nan());
        assert_eq!(inf.sub(inf, float()).error, 0.0);
        assert_eq!(inf.mul(about(3.0), float()), inf);
        assert!(inf.mul(about(0.25), float()).is_unknown());
        assert_eq!(about(1.0).div(inf, float()), Approx::exact(0.0));
        assert!(about(1.0).div(about(0.25), float()).is_unknown());
        assert_eq!(Approx::exact(1.0).div(Approx::exact(0.0), float()), inf);
        assert!(Approx::exact(1e30).mul(Approx::exact(1e30), float()).is_unknown());
        let nan = Approx::exact(f64::NAN);
        assert_eq!(nan.mul(about(0.0), float()).error, 0.0);
    }

    #[test]
    fn nan_wins_in_min_and_max_and_the_winner_keeps_its_error() {
        let nan = Approx::exact(f64::NAN);
        let a = Approx { value: -5.0, error: 0.5 };
        let zero = Approx::exact(0.0);
        assert_eq!(a.max(zero), zero);
        assert_eq!(a.min(zero), a);
        assert!(nan.max(a).is_nan() && a.min(nan).is_nan());
        assert!(nan.max(Approx::unknown(3.0)).is_nan());
        assert!(Approx::unknown(f64::NAN).max(a).is_unknown());
        assert_eq!(nan.fmax(a), a);
        assert_eq!(a.fmin(nan), a);
        let near = Approx { value: -5.2, error: 0.25 };
        assert_eq!(a.max(near), Approx { value: -5.0, error: 0.5 });
        assert_eq!(Approx::exact(f64::NEG_INFINITY).max(a), a);
        assert!(nan.max(nan).value.is_nan());
    }

    #[test]
    fn stores_are_exact_where_every_evaluation_stores_the_same() {
        assert_eq!(Approx::exact(0.5).store(DType::BFloat16), Approx::exact(0.5));
        let third = Approx::exact(1.0 / 3.0).store(FLOAT);
        assert_eq!(third.value, f64::from(1.0_f32 / 3.0));
        assert!(third.error > 0.0 && third.error < 1e-7);
        assert_eq!(Approx { value: 1e40, error: 1.0 }.store(FLOAT), Approx::exact(f64::INFINITY));
        let edge = Approx { value: f64::from(f32::MAX), error: 1e32 };
        assert!(edge.store(FLOAT).is_unknown());
        assert_eq!(Approx::exact(f64::NEG_INFINITY).store(FLOAT).error, 0.0);
    }

    #[test]
    fn comparisons_of_exact_numbers_are_certain() {
        let (a, b) = (Approx::exact(1.0), Approx { value: 1.5, error: 0.25 });
        assert!(!comparison_is_uncertain(a, a));
        assert!(!comparison_is_uncertain(a, b));
        assert!(comparison_is_uncertain(a, Approx { error: 0.5, ..b }));
        assert!(comparison_is_uncertain(a, Approx::unknown(9.0)));
        assert!(!comparison_is_uncertain(Approx::exact(f64::INFINITY), b));
    }
}
