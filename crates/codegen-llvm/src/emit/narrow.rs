//! Converts between memory and expression types: `bool` and storage-only floats.
//!
//! Expressions hold storage-only floats as `float`. All constants follow from the
//! [`FloatFormat`]; shorter code is for a `float` without its last bits, and for targets with
//! instructions.

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode;
use tensorwright_lang::dtype::{DType, FloatFormat};

use super::Emitter;
use super::ir::Value;
use crate::error::Result;
use tensorwright_machine::VectorIsa;

impl<'ctx> Emitter<'_, 'ctx> {
    /// The expression value of a memory value.
    pub(super) fn decode(&self, dtype: DType, stored: Value<'ctx>) -> Result<Value<'ctx>> {
        match dtype.narrow_format() {
            None if dtype == DType::Bool => {
                let zero = self.ir.constant_like(0, stored)?;
                self.ir.compare_ints(IntPredicate::NE, stored, zero)
            }
            None => Ok(stored),
            Some(FloatFormat::BINARY16) if self.converts_half() => {
                let half = self.ir.bitcast(stored, self.ir.context.f16_type())?;
                self.ir.cast(InstructionOpcode::FPExt, half, self.ir.context.f32_type())
            }
            Some(format) if format.is_truncated_float() => {
                let bits =
                    self.ir.cast(InstructionOpcode::ZExt, stored, self.ir.context.i32_type())?;
                let bits = self.shift(InstructionOpcode::Shl, bits, format.shift())?;
                self.ir.bitcast(bits, self.ir.context.f32_type())
            }
            Some(format) => self.narrow_to_float(format, stored),
        }
    }

    /// The memory value of an expression value: floats are rounded to nearest even.
    pub(super) fn encode(&self, dtype: DType, value: Value<'ctx>) -> Result<Value<'ctx>> {
        let bits = match dtype.narrow_format() {
            None if dtype == DType::Bool => {
                return self.ir.cast(InstructionOpcode::ZExt, value, self.ir.context.i8_type());
            }
            None => return Ok(value),
            Some(FloatFormat::BINARY16) if self.converts_half() => {
                let half =
                    self.ir.cast(InstructionOpcode::FPTrunc, value, self.ir.context.f16_type())?;
                return self.ir.bitcast(half, self.ir.context.i16_type());
            }
            Some(format) if format.is_truncated_float() => self.truncated_float(format, value)?,
            Some(format) => self.float_to_narrow(format, value)?,
        };
        self.low_bits(bits, dtype)
    }

    /// A `float` rounded to a storage-only type.
    pub(super) fn round_to_stored(&self, dtype: DType, value: Value<'ctx>) -> Result<Value<'ctx>> {
        let stored = self.encode(dtype, value)?;
        self.decode(dtype, stored)
    }

    /// Whether the target has instructions for `half`. Otherwise LLVM calls a library.
    fn converts_half(&self) -> bool {
        self.ir.target.cpu().isa() != VectorIsa::Sse
    }

    fn shift(&self, op: InstructionOpcode, bits: Value<'ctx>, by: u32) -> Result<Value<'ctx>> {
        self.ir.binary(op, bits, self.ir.constant_like(i64::from(by), bits)?)
    }

    /// Rounding is an addition to the bits that carries into those that are kept. The AVX-512
    /// instruction for `bfloat16` is not used: it flushes denormals to zero.
    fn truncated_float(&self, format: FloatFormat, value: Value<'ctx>) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let number = |n: u32, like| ir.constant_like(i64::from(n), like);
        let bits = ir.bitcast(value, ir.context.i32_type())?;
        let upper = self.shift(InstructionOpcode::LShr, bits, format.shift())?;
        let is_odd = ir.and(upper, number(1, bits)?)?;
        let below_middle = (1 << (format.shift() - 1)) - 1;
        let sum = ir.add(ir.add(bits, number(below_middle, bits)?)?, is_odd)?;
        let rounded = self.shift(InstructionOpcode::LShr, sum, format.shift())?;
        let quiet = ir.or(upper, number(1 << (format.mantissa_bits - 1), bits)?)?;
        let magnitude = ir.and(bits, number(0x7fff_ffff, bits)?)?;
        let is_nan = ir.compare_ints(IntPredicate::UGT, magnitude, number(0x7f80_0000, bits)?)?;
        ir.select(is_nan, quiet, rounded)
    }

    /// The bits moved to the position of a `float`'s, scaled by the difference of the exponent
    /// biases: exact, also for denormals.
    fn narrow_to_float(&self, format: FloatFormat, stored: Value<'ctx>) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let number = |n: u32, like| ir.constant_like(i64::from(n), like);
        let bits = ir.cast(InstructionOpcode::ZExt, stored, ir.context.i32_type())?;
        let magnitude = ir.and(bits, number(format.sign() - 1, bits)?)?;
        let sign = ir.binary(InstructionOpcode::Xor, bits, magnitude)?;
        let sign = self.shift(InstructionOpcode::Shl, sign, 32 - format.bits())?;
        let shifted = self.shift(InstructionOpcode::Shl, magnitude, format.shift())?;
        let small = ir.bitcast(shifted, ir.context.f32_type())?;
        let scale = 2f64.powi((FloatFormat::BINARY32.bias() - format.bias()) as i32);
        let scale = ir.context.f32_type().const_float(scale).into();
        let scaled = ir.binary(InstructionOpcode::FMul, small, scale)?;
        let scaled = ir.bitcast(scaled, ir.context.i32_type())?;
        let special = ir.or(shifted, number(0x7f80_0000, bits)?)?;
        let first_special = number(format.first_special(), bits)?;
        let is_special = ir.compare_ints(IntPredicate::UGE, magnitude, first_special)?;
        let result = ir.or(ir.select(is_special, special, scaled)?, sign)?;
        ir.bitcast(result, ir.context.f32_type())
    }

    /// Rounds to nearest even in the bits; numbers below the least normal one by an addition that
    /// shifts their last bit to the rounding position.
    fn float_to_narrow(&self, format: FloatFormat, value: Value<'ctx>) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let (f32_type, i32_type) = (ir.context.f32_type(), ir.context.i32_type());
        let number = |n: u32, like| ir.constant_like(i64::from(n), like);
        let bits = ir.bitcast(value, i32_type)?;
        let magnitude = ir.and(bits, number(0x7fff_ffff, bits)?)?;
        let sign = ir.binary(InstructionOpcode::Xor, bits, magnitude)?;
        let sign = self.shift(InstructionOpcode::LShr, sign, 32 - format.bits())?;

        let shift = format.shift();
        let is_odd =
            ir.and(self.shift(InstructionOpcode::LShr, magnitude, shift)?, number(1, bits)?)?;
        let rebias = (1 << (shift - 1)) - 1 - i64::from(format.float_rebias());
        let rebiased = ir.add(magnitude, ir.constant_like(rebias, bits)?)?;
        let normal = self.shift(InstructionOpcode::LShr, ir.add(rebiased, is_odd)?, shift)?;

        let magic = f32_type.const_float(f64::from(format.float_magic())).into();
        let sum = ir.binary(InstructionOpcode::FAdd, ir.bitcast(magnitude, f32_type)?, magic)?;
        let magic_bits = number(format.float_magic().to_bits(), bits)?;
        let denormal = ir.binary(InstructionOpcode::Sub, ir.bitcast(sum, i32_type)?, magic_bits)?;

        let is_nan = ir.compare_ints(IntPredicate::UGT, magnitude, number(0x7f80_0000, bits)?)?;
        let infinity = number(format.first_special(), bits)?;
        let special = ir.select(is_nan, number(format.nan(), bits)?, infinity)?;
        let least_normal = number(format.float_least_normal(), bits)?;
        let is_small = ir.compare_ints(IntPredicate::ULT, magnitude, least_normal)?;
        let overflow = number(format.float_overflow(), bits)?;
        let is_large = ir.compare_ints(IntPredicate::UGE, magnitude, overflow)?;
        let finite = ir.select(is_small, denormal, normal)?;
        ir.or(ir.select(is_large, special, finite)?, sign)
    }
}
