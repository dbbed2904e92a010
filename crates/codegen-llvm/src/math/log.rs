//! `log` within 1 ulp, `log2` and `log10` within 2 ulp.
//!
//! `x = 2^e m` with `m` between the square roots of 1/2 and 2. With `f = m - 1` (exact) and `s = f
//! / (2 + f)`, `log(m) = 2 artanh(s) = 2s + s R(s^2)`, and `R(z) / z` is a minimax polynomial.
//! Since `2s = f - s f`, the sum starts with the exact `f`: `log(m) = f - (f^2/2 - s (f^2/2 + R))`.
//! This is Sun's arrangement in FreeBSD's `e_log.c`.

use std::f64::consts::{FRAC_1_SQRT_2, LOG2_E, LOG10_E};

use super::exp::{LN_2_DOUBLE, LN_2_SINGLE};
use super::lanes::Float;

/// `R(z) / z` on `z <= (3 - 2 sqrt 2)^2`, error `2^-37`.
const SINGLE: [f64; 4] = [6.666666e-01, 4.0000334e-01, 2.853728e-01, 2.3582764e-01];

/// The same for double precision, error `2^-59`.
const DOUBLE: [f64; 7] = [
    0.6666666666666735,
    0.3999999999941313,
    0.28571428742766414,
    0.22222198531110596,
    0.18183566669606335,
    0.1531398678046528,
    0.14796624287805465,
];

/// log10 2 in two parts, the first of them with few bits.
const LOG10_2_SINGLE: [f64; 2] = [0.301025390625, 4.605038981195214e-06];

/// The same for double precision.
const LOG10_2_DOUBLE: [f64; 2] = [0.3010299955494702, 1.1451100898021838e-10];

/// A positive number as `2^exponent (1 + fraction)`.
pub(super) struct Split<'a, 'ctx> {
    exponent: Float<'a, 'ctx>,
    fraction: Float<'a, 'ctx>,
}

/// Decomposes a positive finite number.
pub(super) fn split<'a, 'ctx>(x: Float<'a, 'ctx>) -> Split<'a, 'ctx> {
    let precision = x.precision();
    // Denormal numbers have no exponent of their own.
    let lift = f64::from(precision.mantissa_bits() + 2);
    let denormal = x.below(precision.min_positive());
    let normal = denormal.select(x * x.constant(lift.exp2()), x);
    let bits = normal.bits();
    let exponent = bits.minus_bits_of(FRAC_1_SQRT_2).shift_right(precision.mantissa_bits());
    let m = bits.minus(exponent.shift_left(precision.mantissa_bits())).float();
    let lifted = denormal.select(x.constant(lift), x.constant(0.0));
    Split { exponent: exponent.to_float() - lifted, fraction: m - x.constant(1.0) }
}

impl<'a, 'ctx> Split<'a, 'ctx> {
    /// `log(1 + fraction)` as `fraction` minus a remainder; `extra` is subtracted from the
    /// remainder before rounding.
    fn parts(&self, extra: Float<'a, 'ctx>) -> [Float<'a, 'ctx>; 2] {
        let f = self.fraction;
        let s = f / (f + f.constant(2.0));
        let z = s * s;
        let r = z * z.polynomial(z.precision().pick(&SINGLE, &DOUBLE));
        let half_square = f * f * f.constant(0.5);
        [f, half_square - s.mul_add(half_square + r, extra)]
    }

    /// The natural logarithm of the number plus a small correction.
    pub(super) fn log(&self, correction: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
        let e = self.exponent;
        let [high, low] = e.precision().pick(LN_2_SINGLE, LN_2_DOUBLE);
        let extra = e.mul_add(e.constant(low), correction);
        let [f, rest] = self.parts(extra);
        e * e.constant(high) - (rest - f)
    }

    /// `log(1 + fraction)`.
    fn log_of_fraction(&self) -> Float<'a, 'ctx> {
        let [f, rest] = self.parts(self.fraction.constant(0.0));
        f - rest
    }

    /// The logarithm to base 2.
    pub(super) fn log2(&self) -> Float<'a, 'ctx> {
        let log = self.log_of_fraction();
        log.mul_add(log.constant(LOG2_E), self.exponent)
    }

    fn log10(&self) -> Float<'a, 'ctx> {
        let (e, log) = (self.exponent, self.log_of_fraction());
        let [high, low] = e.precision().pick(LOG10_2_SINGLE, LOG10_2_DOUBLE);
        let small = log * e.constant(LOG10_E) + e * e.constant(low);
        e.mul_add(e.constant(high), small)
    }
}

/// The logarithms of numbers that are not positive and finite.
pub(super) fn with_special_values<'a, 'ctx>(
    x: Float<'a, 'ctx>,
    result: Float<'a, 'ctx>,
) -> Float<'a, 'ctx> {
    // Infinity and NaN are their own logarithms.
    let result = x.below(f64::INFINITY).select(result, x);
    let result = x.equals(0.0).select(x.constant(f64::NEG_INFINITY), result);
    x.below(0.0).select(x.constant(f64::NAN), result)
}

/// The natural logarithm.
pub(super) fn log<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    with_special_values(x, split(x).log(x.constant(0.0)))
}

/// The logarithm to base 2.
pub(super) fn log2<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    with_special_values(x, split(x).log2())
}

/// The logarithm to base 10.
pub(super) fn log10<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    with_special_values(x, split(x).log10())
}
