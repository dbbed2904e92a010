//! `pow` in single precision, within 1 ulp; double precision uses the library.
//!
//! `|x|^y = 2^(y log2 |x|)`. The product magnifies the error of the logarithm by up to 150, which
//! the 29 bits that double precision has to spare absorb. (Double precision has no spare bits,
//! and would need a logarithm in two parts.) Special cases are those of C, annex F.10.4.4.

use inkwell::FloatPredicate;

use super::exp2;
use super::lanes::Float;
use super::log;

/// `x` to the power of `y`, both of single precision.
pub(super) fn pow<'a, 'ctx>(x: Float<'a, 'ctx>, y: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let (wide_x, wide_y) = (x.widen(), y.widen());
    let one = wide_x.constant(1.0);
    let size = wide_x.abs();
    let log = log::with_special_values(size, log::split(size).log2());
    // 1 to any power is 1, also where the product is 0 times infinity.
    let magnitude = size.equals(1.0).select(one, exp2::exp2(wide_y * log));

    // Above 2^24 every number is an even integer, and so is the bound. NaN counts as one here and
    // is handled below.
    let bounded = wide_y.clamp(-33_554_432.0, 33_554_432.0);
    let (nearest, bits) = bounded.nearest_integer(1.0);
    let fractional = bounded.compare(FloatPredicate::ONE, nearest);
    let odd = bits.masked(1).equals(1).and(bounded.compare(FloatPredicate::OEQ, nearest));

    let signed = odd.select(magnitude.copysign(wide_x), magnitude);
    let outside = wide_x.below(0.0).and(wide_x.above(f64::NEG_INFINITY)).and(fractional);
    let undefined = outside.or(wide_x.is_nan()).or(wide_y.is_nan());
    let result = undefined.select(one.constant(f64::NAN), signed);
    wide_y.equals(0.0).or(wide_x.equals(1.0)).select(one, result).narrow()
}
