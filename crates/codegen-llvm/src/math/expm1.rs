//! `expm1`, within 2 ulp in both precisions.
//!
//! With the reduction of [`exp`](super::exp) and `m = exp(r) - 1`, the result is `2^n m + (2^n -
//! 1)`, without cancellation. It is evaluated at half its size, because `2^n` itself may be out of
//! range.

use super::exp;
use super::lanes::Float;

/// `exp(x) - 1`.
pub(super) fn expm1<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    // Below the lower bound the result rounds to -1, above the upper one it is infinite.
    let [low, high] = x.precision().pick([-20.0, 89.0], [-40.0, 710.0]);
    let reduced = exp::reduce(x.clamp(low, high));
    let m = reduced.expm1();
    let half = reduced.exponent.offset(-1).power_of_two();
    let result = half.mul_add(m, half - x.constant(0.5)) * x.constant(2.0);
    // Halving a denormal number would lose its last bit. The sign is that of x, also for -0.
    reduced.exponent.equals(0).select(m, result).copysign(x)
}
