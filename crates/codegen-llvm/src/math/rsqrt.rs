//! `rsqrt`, within 1.5 ulp in both precisions.
//!
//! Two correctly rounded operations. The estimate instructions with a Newton step are faster but
//! need special cases for zero, infinity and denormal numbers.

use super::lanes::Float;

/// `1 / sqrt(x)`.
pub(super) fn rsqrt<'a, 'ctx>(x: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    x.constant(1.0) / x.sqrt()
}
