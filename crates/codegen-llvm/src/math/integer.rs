//! Integer builtins.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntMathValue};
use tensorwright_lang::builtin::Builtin;

use super::{Math, lanes};
use crate::error::{Error, Result};

/// `abs`, `min`, `max`, `clamp` or a bitwise function of integers. The absolute value of the least
/// signed integer wraps around to itself.
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
        (Builtin::BitNot, &[x]) => two(math, Builtin::BitXor, x, number(x, u64::MAX)?, signed),
        (Builtin::ShiftLeft | Builtin::ShiftRight, &[x, y]) => shift(math, builtin, x, y, signed),
        (Builtin::BitAnd | Builtin::BitOr | Builtin::BitXor, &[x, y]) => {
            two(math, builtin, x, y, signed)
        }
        _ => Err(Error::Build(format!("`{}` does not take integers", builtin.name()))),
    }
}

/// An intrinsic on two scalars or two vectors.
fn two<'ctx>(
    math: &Math<'_, 'ctx>,
    builtin: Builtin,
    x: BasicValueEnum<'ctx>,
    y: BasicValueEnum<'ctx>,
    signed: bool,
) -> Result<BasicValueEnum<'ctx>> {
    fn built<'ctx, T: IntMathValue<'ctx>>(
        math: &Math<'_, 'ctx>,
        builtin: Builtin,
        x: T,
        y: T,
        signed: bool,
    ) -> Result<T> {
        let builder = math.builder;
        Ok(match builtin {
            Builtin::BitAnd => builder.build_and(x, y, "")?,
            Builtin::BitOr => builder.build_or(x, y, "")?,
            Builtin::BitXor => builder.build_xor(x, y, "")?,
            Builtin::ShiftLeft => builder.build_left_shift(x, y, "")?,
            _ => builder.build_right_shift(x, y, signed, "")?,
        })
    }
    match (x, y) {
        (BasicValueEnum::IntValue(x), BasicValueEnum::IntValue(y)) => {
            Ok(built(math, builtin, x, y, signed)?.into())
        }
        (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) => {
            Ok(built(math, builtin, x, y, signed)?.into())
        }
        _ => Err(Error::Build(format!("`{}` of values of different shape", builtin.name()))),
    }
}

/// A shift. Shifting by a negative number, or by all bits, leaves only sign bits; LLVM leaves it
/// undefined.
fn shift<'ctx>(
    math: &Math<'_, 'ctx>,
    builtin: Builtin,
    x: BasicValueEnum<'ctx>,
    y: BasicValueEnum<'ctx>,
    signed: bool,
) -> Result<BasicValueEnum<'ctx>> {
    let BasicTypeEnum::IntType(element) = lanes::element_type(x.get_type()) else {
        return Err(Error::Build(format!("`{}` takes integers", builtin.name())));
    };
    let width = u64::from(element.get_bit_width());
    let most = math.intrinsic("llvm.umin", &[y, number(y, width - 1)?])?;
    let shifted = two(math, builtin, x, most, signed)?;
    if builtin == Builtin::ShiftRight && signed {
        return Ok(shifted);
    }
    let (limit, nothing) = (number(y, width)?, number(x, 0)?);
    match (y, limit) {
        (BasicValueEnum::VectorValue(y), BasicValueEnum::VectorValue(limit)) => {
            let inside = math.builder.build_int_compare(IntPredicate::ULT, y, limit, "")?;
            Ok(math.builder.build_select(inside, shifted, nothing, "")?)
        }
        (BasicValueEnum::IntValue(y), BasicValueEnum::IntValue(limit)) => {
            let inside = math.builder.build_int_compare(IntPredicate::ULT, y, limit, "")?;
            Ok(math.builder.build_select(inside, shifted, nothing, "")?)
        }
        _ => Err(Error::Build(format!("`{}` of values of different shape", builtin.name()))),
    }
}

/// A number in the type of a value, in all lanes.
fn number<'ctx>(like: BasicValueEnum<'ctx>, number: u64) -> Result<BasicValueEnum<'ctx>> {
    match lanes::element_type(like.get_type()) {
        BasicTypeEnum::IntType(element) => {
            Ok(lanes::splat(like.get_type(), element.const_int(number, true).into()))
        }
        _ => Err(Error::Build("an integer was expected".into())),
    }
}
