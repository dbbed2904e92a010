//! `sigmoid`, within 2.5 ulp in both precisions.
//!
//! `exp(-|x|)` never overflows, and the small results for negative `x` keep their precision.

use super::exp;
use super::lanes::Float;

/// `1 / (1 + exp(-x))`.
pub(super) fn sigmoid<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let one = x.constant(1.0);
    let e = exp::exp(-x.abs());
    x.below(0.0).select(e, one) / (e + one)
}
