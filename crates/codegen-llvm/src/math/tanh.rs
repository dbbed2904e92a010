//! `tanh`, within 2 ulp in both precisions.
//!
//! With `t = exp(-2|x|) - 1`, `tanh |x| = -t / (2 + t)`. As in [`expm1`](super::expm1), `t` is
//! `2^n m + (2^n - 1)`, and `2 + t` is `2^n m + (2^n + 1)`: each is rounded once. There is nothing
//! to cancel near zero, and nothing to overflow far from it.

use super::exp;
use super::lanes::Float;

/// The hyperbolic tangent.
pub(super) fn tanh<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let one = x.constant(1.0);
    // Below the lower bound the result rounds to 1.
    let low = x.precision().pick(-20.0, -40.0);
    let reduced = exp::reduce((x.abs() * x.constant(-2.0)).clamp(low, 0.0));
    let m = reduced.expm1();
    let power = reduced.exponent.power_of_two();
    let numerator = (-power).mul_add(m, one - power);
    let denominator = power.mul_add(m, one + power);
    (numerator / denominator).copysign(x)
}
