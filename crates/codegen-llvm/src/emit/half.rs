//! Converts between memory and expression types: `bool` and 16-bit floats.
//!
//! Expressions hold the 16-bit floats as `float`.

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode;
use tensorwright_lang::dtype::DType;

use super::Emitter;
use super::ir::Value;
use crate::error::Result;
use tensorwright_machine::VectorIsa;

impl<'ctx> Emitter<'_, 'ctx> {
    /// The expression value of a memory value.
    pub(super) fn decode(&self, dtype: DType, stored: Value<'ctx>) -> Result<Value<'ctx>> {
        match dtype {
            DType::Bool => {
                let zero = self.ir.constant_like(0, stored)?;
                self.ir.compare_ints(IntPredicate::NE, stored, zero)
            }
            DType::Half if self.converts_half() => {
                let half = self.ir.bitcast(stored, self.ir.context.f16_type())?;
                self.ir.cast(InstructionOpcode::FPExt, half, self.ir.context.f32_type())
            }
            DType::Half => self.half_to_float(stored),
            DType::BFloat16 => {
                // The upper half of a `float`.
                let bits =
                    self.ir.cast(InstructionOpcode::ZExt, stored, self.ir.context.i32_type())?;
                let bits = self.shift(InstructionOpcode::Shl, bits, 16)?;
                self.ir.bitcast(bits, self.ir.context.f32_type())
            }
            DType::Int8
            | DType::Int16
            | DType::Int32
            | DType::Int64
            | DType::UInt8
            | DType::UInt16
            | DType::UInt32
            | DType::UInt64
            | DType::Float
            | DType::Double => Ok(stored),
        }
    }

    /// The memory value of an expression value: floats are rounded to nearest even.
    pub(super) fn encode(&self, dtype: DType, value: Value<'ctx>) -> Result<Value<'ctx>> {
        match dtype {
            DType::Bool => self.ir.cast(InstructionOpcode::ZExt, value, self.ir.context.i8_type()),
            DType::Half if self.converts_half() => {
                let half =
                    self.ir.cast(InstructionOpcode::FPTrunc, value, self.ir.context.f16_type())?;
                self.ir.bitcast(half, self.ir.context.i16_type())
            }
            DType::Half => self.float_to_half(value),
            DType::BFloat16 => self.float_to_bfloat16(value),
            DType::Int8
            | DType::Int16
            | DType::Int32
            | DType::Int64
            | DType::UInt8
            | DType::UInt16
            | DType::UInt32
            | DType::UInt64
            | DType::Float
            | DType::Double => Ok(value),
        }
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

    fn shift(&self, op: InstructionOpcode, bits: Value<'ctx>, by: i64) -> Result<Value<'ctx>> {
        self.ir.binary(op, bits, self.ir.constant_like(by, bits)?)
    }

    /// Rounding is an addition to the bits that carries into the upper half. The AVX-512
    /// instruction is not used: it flushes denormals to zero.
    fn float_to_bfloat16(&self, value: Value<'ctx>) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let number = |n: i64, like| ir.constant_like(n, like);
        let bits = ir.bitcast(value, ir.context.i32_type())?;
        let upper = self.shift(InstructionOpcode::LShr, bits, 16)?;
        let is_odd = ir.and(upper, number(1, bits)?)?;
        let sum = ir.add(ir.add(bits, number(0x7fff, bits)?)?, is_odd)?;
        let rounded = self.shift(InstructionOpcode::LShr, sum, 16)?;
        let quiet = ir.or(upper, number(0x40, bits)?)?;
        let magnitude = ir.and(bits, number(0x7fff_ffff, bits)?)?;
        let is_nan = ir.compare_ints(IntPredicate::UGT, magnitude, number(0x7f80_0000, bits)?)?;
        let result = ir.select(is_nan, quiet, rounded)?;
        ir.cast(InstructionOpcode::Trunc, result, ir.context.i16_type())
    }

    /// The bits of a `half` moved to the position of a `float`'s, scaled by the difference of the
    /// exponent biases: exact, also for denormals.
    fn half_to_float(&self, stored: Value<'ctx>) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let number = |n: i64, like| ir.constant_like(n, like);
        let bits = ir.cast(InstructionOpcode::ZExt, stored, ir.context.i32_type())?;
        let magnitude = ir.and(bits, number(0x7fff, bits)?)?;
        let sign = ir.binary(InstructionOpcode::Xor, bits, magnitude)?;
        let sign = self.shift(InstructionOpcode::Shl, sign, 16)?;
        let shifted = self.shift(InstructionOpcode::Shl, magnitude, 13)?;
        let small = ir.bitcast(shifted, ir.context.f32_type())?;
        let scale = ir.context.f32_type().const_float(2f64.powi(112)).into();
        let scaled = ir.binary(InstructionOpcode::FMul, small, scale)?;
        let scaled = ir.bitcast(scaled, ir.context.i32_type())?;
        let special = ir.or(shifted, number(0x7f80_0000, bits)?)?;
        let is_special = ir.compare_ints(IntPredicate::UGE, magnitude, number(0x7c00, bits)?)?;
        let result = ir.or(ir.select(is_special, special, scaled)?, sign)?;
        ir.bitcast(result, ir.context.f32_type())
    }

    /// Rounds to nearest even in the bits; numbers below the least normal `half` by an addition
    /// that shifts their last bit to the rounding position.
    fn float_to_half(&self, value: Value<'ctx>) -> Result<Value<'ctx>> {
        const DENORMAL: i64 = 126 << 23;
        let ir = &self.ir;
        let (f32_type, i32_type) = (ir.context.f32_type(), ir.context.i32_type());
        let number = |n: i64, like| ir.constant_like(n, like);
        let bits = ir.bitcast(value, i32_type)?;
        let magnitude = ir.and(bits, number(0x7fff_ffff, bits)?)?;
        let sign = ir.binary(InstructionOpcode::Xor, bits, magnitude)?;
        let sign = self.shift(InstructionOpcode::LShr, sign, 16)?;

        let is_odd =
            ir.and(self.shift(InstructionOpcode::LShr, magnitude, 13)?, number(1, bits)?)?;
        let rebiased = ir.add(magnitude, number(((15 - 127) << 23) + 0xfff, bits)?)?;
        let normal = self.shift(InstructionOpcode::LShr, ir.add(rebiased, is_odd)?, 13)?;

        let half = f32_type.const_float(0.5).into();
        let sum = ir.binary(InstructionOpcode::FAdd, ir.bitcast(magnitude, f32_type)?, half)?;
        let denormal =
            ir.binary(InstructionOpcode::Sub, ir.bitcast(sum, i32_type)?, number(DENORMAL, bits)?)?;

        let is_nan = ir.compare_ints(IntPredicate::UGT, magnitude, number(0x7f80_0000, bits)?)?;
        let special = ir.select(is_nan, number(0x7e00, bits)?, number(0x7c00, bits)?)?;
        let is_small = ir.compare_ints(IntPredicate::ULT, magnitude, number(113 << 23, bits)?)?;
        let is_large = ir.compare_ints(IntPredicate::UGE, magnitude, number(143 << 23, bits)?)?;
        let finite = ir.select(is_small, denormal, normal)?;
        let result = ir.or(ir.select(is_large, special, finite)?, sign)?;
        ir.cast(InstructionOpcode::Trunc, result, ir.context.i16_type())
    }
}
