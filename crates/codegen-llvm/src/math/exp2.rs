//! `exp2`, within 1 ulp in both precisions.
//!
//! Like [`exp`](super::exp), but the reduction `x = n + f` is exact.

use std::f64::consts::LN_2;

use super::exp;
use super::lanes::Float;

/// `2^x`.
pub(super) fn exp2<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    let [low, high] = x.precision().pick([-151.0, 128.0], [-1076.0, 1024.0]);
    let x = x.clamp(low, high);
    let (n, exponent) = x.nearest_integer(1.0);
    exp::remainder((x - n) * x.constant(LN_2), (n, exponent)).scaled()
}
