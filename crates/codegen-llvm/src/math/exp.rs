//! `exp`, within 1 ulp in both precisions.
//!
//! `x = n ln 2 + r` with integer `n` and `|r| <= ln 2 / 2`, so `exp(x) = 2^n exp(r)`. `n ln 2` is
//! subtracted in two steps, the first of them exact (Cody and Waite). `exp(r)` is `1 + r + r^2
//! q(r)` where `q` is a minimax polynomial; the error of the polynomial is `2^-28` for `float` and
//! `2^-57` for `double`. A denormal result is rounded a second time.
//!
//! Softmax, attention and activations spend most of their time here, so the code omits Dekker's sum
//! of 1 and `r`, which would improve the error by a quarter of an ulp.

use std::f64::consts::LOG2_E;

use super::lanes::{Bits, Float};

/// `(exp(r) - 1 - r) / r^2` on `|r| <= ln 2 / 2`.
const SINGLE: [f64; 5] = [4.9999994e-01, 1.666652e-01, 4.1668393e-02, 8.3687855e-03, 1.3815033e-03];

/// The same for double precision.
const DOUBLE: [f64; 10] = [
    0.5000000000000011,
    0.1666666666666641,
    0.04166666666652919,
    0.00833333333349562,
    0.0013888888943922738,
    0.0001984126950476708,
    2.480149276270057e-05,
    2.75575873436961e-06,
    2.763037865119388e-07,
    2.4999964132265744e-08,
];

/// ln 2 with so few bits that its product with an exponent is exact, and the remainder.
pub(super) const LN_2_SINGLE: [f64; 2] = [0.693145751953125, 1.4286068203094173e-06];

/// The same for double precision.
pub(super) const LN_2_DOUBLE: [f64; 2] = [0.6931471803691238, 1.9082149292705877e-10];

/// `x` as `n ln 2 + high - low`, where `high` is exact.
pub(super) struct Reduced<'a, 'ctx> {
    /// `n`, as a number and as an integer.
    number: Float<'a, 'ctx>,
    pub(super) exponent: Bits<'a, 'ctx>,
    high: Float<'a, 'ctx>,
    low: Float<'a, 'ctx>,
}

/// Subtracts the multiple of ln 2 from a number that is not much larger than the exponent range.
pub(super) fn reduce<'a, 'ctx>(x: Float<'a, 'ctx>) -> Reduced<'a, 'ctx> {
    let [ln2_high, ln2_low] = x.precision().pick(LN_2_SINGLE, LN_2_DOUBLE);
    let (n, exponent) = x.nearest_integer(LOG2_E);
    let high = n.mul_add(x.constant(-ln2_high), x);
    Reduced { number: n, exponent, high, low: n * x.constant(ln2_low) }
}

impl<'a, 'ctx> Reduced<'a, 'ctx> {
    /// `exp(r) - 1` as a sum of an exact and a much smaller number.
    fn parts(&self) -> [Float<'a, 'ctx>; 2] {
        let r = self.high - self.low;
        let tail = r.polynomial(r.precision().pick(&SINGLE, &DOUBLE));
        // The rounding error of `r` matters in its sum with 1, not in the tail.
        [self.high, (r * r).mul_add(tail, -self.low)]
    }

    /// `exp(r) - 1` of the remainder.
    pub(super) fn expm1(&self) -> Float<'a, 'ctx> {
        let [high, tail] = self.parts();
        high + tail
    }

    /// `exp(r)` of the remainder.
    pub(super) fn exp(&self) -> Float<'a, 'ctx> {
        let r = self.high - self.low;
        let tail = r.polynomial(r.precision().pick(&SINGLE, &DOUBLE));
        r.constant(1.0) + (r * r).mul_add(tail, r)
    }

    /// `exp(x)`.
    pub(super) fn scaled(&self) -> Float<'a, 'ctx> {
        let exp = self.exp();
        exp.scale_whole(self.number).unwrap_or_else(|| exp.scale(self.exponent))
    }
}

/// A number without a multiple of ln 2 to subtract.
pub(super) fn remainder<'a, 'ctx>(
    r: Float<'a, 'ctx>,
    (number, exponent): (Float<'a, 'ctx>, Bits<'a, 'ctx>),
) -> Reduced<'a, 'ctx> {
    Reduced { number, exponent, high: r, low: r.constant(0.0) }
}

/// `exp(x)`.
pub(super) fn exp<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    // Beyond these bounds the result is zero or infinity, as it is at them. Results that underflow
    // are not computed: they take a CPU a hundred cycles, and a masked softmax has many.
    let [low, high] = x.precision().pick([-104.0, 89.0], [-746.0, 710.0]);
    let zero = x.constant(0.0);
    let is_zero = x.below(low);
    let bounded = is_zero.select(zero, x);
    let bounded = bounded.above(high).select(x.constant(high), bounded);
    is_zero.select(zero, reduce(bounded).scaled())
}
