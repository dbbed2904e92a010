//! The builtins that take integers.

use inkwell::values::BasicValueEnum;
use tensorwright_lang::builtin::Builtin;

use super::Math;
use crate::error::{Error, Result};

/// `abs`, `min`, `max` or `clamp` of integers. The absolute value of the least signed integer
/// wraps around to itself.
pub(super) fn call<'ctx>(
    math: &Math<'_, 'ctx>,
    builtin: Builtin,
    args: &[BasicValueEnum<'ctx>],
    signed: bool,
) -> Result<BasicValueEnum<'ctx>> {
    let (min, max) = if signed { ("llvm.smin", "llvm.smax") } else { ("llvm.umin", "llvm.umax") };
    match (builtin, args) {
        (Builtin::Abs, &[x]) if signed => {
            let least_is_poison = math.module.get_context().bool_type().const_zero();
            math.intrinsic("llvm.abs", &[x, least_is_poison.into()])
        }
        (Builtin::Abs, &[x]) => Ok(x),
        (Builtin::Min, &[x, y]) => math.intrinsic(min, &[x, y]),
        (Builtin::Max, &[x, y]) => math.intrinsic(max, &[x, y]),
        (Builtin::Clamp, &[x, low, high]) => {
            math.intrinsic(min, &[math.intrinsic(max, &[x, low])?, high])
        }
        _ => Err(Error::Build(format!("`{}` does not take integers", builtin.name()))),
    }
}
