//! `min` and `max`, which are NaN where one of their arguments is.
//!
//! Processors of ARM have an instruction for it. Those of Intel have one that gives the second operand where
//! nothing can be compared, so that a NaN in the first needs a comparison and a blend: as much as C's `fmax`
//! takes, which has to drop one. A constant goes first, since no constant but NaN itself needs that.

use inkwell::FloatPredicate;

use super::lanes::Float;

/// The lesser; NaN if one of them is. Whether a `-0` counts as less than `0` is left open.
pub(super) fn min<'a, 'ctx>(x: Float<'a, 'ctx>, y: Float<'a, 'ctx>) -> Float<'a, 'ctx> {
    extreme(x, y, "llvm.minimum", FloatPredicate::OLT)
}

/// The greater; NaN if one of them is.
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
