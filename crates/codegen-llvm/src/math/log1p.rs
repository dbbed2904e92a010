//! `log1p`, within 2 ulp in both precisions.
//!
//! `u = 1 + x` is rounded; its rounding error `c` changes the logarithm by `c / u`.

use super::lanes::Float;
use super::log;

/// `log(1 + x)`.
pub(super) fn log1p<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let one = x.constant(1.0);
    let u = x + one;
    // The difference of the larger operand and the sum is exact (Dekker).
    let lost = x.above(1.0).select(one - (u - x), x - (u - one));
    let result = log::split(u).log(lost / u);
    // The sign is that of x, also for -0 (and for u = 0).
    log::with_special_values(u, result).copysign(x)
}
