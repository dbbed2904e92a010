//! `min` and `max`, which propagate NaN.
//!
//! ARM has an instruction for this. Intel's instruction returns the second operand if the operands
//! are unordered, so a NaN in the first operand needs a comparison and a blend: as much as C's
//! `fmax`, which has to drop a NaN. A constant is the first operand, because only a NaN constant
//! needs that.

use inkwell::FloatPredicate;

use super::lanes::Float;

/// The minimum; NaN if one of them is. The order of `-0` and `0` is unspecified.
pub(super) fn min<'a, 'ctx>(x: Float<'a, 'ctx>, y: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    extreme(x, y, "llvm.minimum", FloatPredicate::OLT)
}

/// The maximum; NaN if one of them is.
pub(super) fn max<'a, 'ctx>(x: Float<'a, 'ctx>, y: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    extreme(x, y, "llvm.maximum", FloatPredicate::OGT)
}

fn extreme<'a, 'ctx>(
    x: Float<'a, 'ctx>,
    y: Float<'a, 'ctx>,
    instruction: &str,
    wins: FloatPredicate,
) -> Float<'a, 'ctx> {
    if x.has_nan_extremes() {
        return x.intrinsic(instruction, &[y]);
    }
    let (x, y) = if y.is_constant() { (y, x) } else { (x, y) };
    let winner = x.compare(wins, y).select(x, y);
    x.is_nan().select(x, winner)
}
