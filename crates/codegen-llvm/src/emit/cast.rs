//! Emits conversions between types.

use inkwell::types::{BasicType as _, FloatType, IntType};
use inkwell::values::InstructionOpcode;
use inkwell::{FloatPredicate, IntPredicate};
use tensorwright_lang::dtype::DType;

use super::Emitter;
use super::ir::{Value, widened, width};
use super::memory::integer;
use crate::error::Result;
use tensorwright_machine::VectorIsa;

impl<'ctx> Emitter<'_, 'ctx> {
    /// The integer type of expressions.
    pub(super) fn integer_type(&self, dtype: DType) -> IntType<'ctx> {
        match dtype {
            DType::Bool => self.ir.context.bool_type(),
            _ => integer(self.ir.context, dtype.bytes()),
        }
    }

    /// The floating-point type of expressions.
    fn float_type(&self, dtype: DType) -> FloatType<'ctx> {
        match dtype.computed_in() {
            DType::Double => self.ir.context.f64_type(),
            _ => self.ir.context.f32_type(),
        }
    }

    /// Converts a value: floats are rounded to nearest, or truncated to integers and saturated;
    /// integers wrap around; to `bool` it is `!= 0`.
    pub(super) fn cast(&self, value: Value<'ctx>, from: DType, to: DType) -> Result<Value<'ctx>> {
        match (from.is_float(), to.is_float()) {
            (true, true) => self.float_to_float(value, from, to),
            (true, false) if to == DType::Bool => {
                let zero = self.ir.constant_like(0, value)?;
                self.ir.compare_floats(FloatPredicate::UNE, value, zero)
            }
            (true, false) => self.float_to_integer(value, to),
            (false, true) => self.integer_to_float(value, from, to),
            (false, false) if from == to => Ok(value),
            (false, false) if to == DType::Bool => {
                let zero = self.ir.constant_like(0, value)?;
                self.ir.compare_ints(IntPredicate::NE, value, zero)
            }
            (false, false) => self.integer_to_integer(value, from, to),
        }
    }

    fn integer_to_integer(
        &self,
        value: Value<'ctx>,
        from: DType,
        to: DType,
    ) -> Result<Value<'ctx>> {
        let (narrow, wide) =
            (self.integer_type(from).get_bit_width(), self.integer_type(to).get_bit_width());
        let op = match (narrow > wide, from.is_signed()) {
            (true, _) => InstructionOpcode::Trunc,
            (false, true) => InstructionOpcode::SExt,
            (false, false) => InstructionOpcode::ZExt,
        };
        if op == InstructionOpcode::Trunc
            && let Some(bytes) = self.low_bytes(value, narrow, wide)?
        {
            return Ok(bytes);
        }
        self.ir.cast(op, value, self.integer_type(to))
    }

    /// The lowest bits of the bits of a `float`, as the bits of a storage-only type.
    pub(super) fn low_bits(&self, bits: Value<'ctx>, dtype: DType) -> Result<Value<'ctx>> {
        let to = integer(self.ir.context, dtype.bytes());
        match self.low_bytes(bits, 32, to.get_bit_width())? {
            Some(bytes) => Ok(bytes),
            None => self.ir.cast(InstructionOpcode::Trunc, bits, to),
        }
    }

    /// The lowest bytes of the lanes, by a shuffle, in cases in which LLVM 19 miscompiles stores of
    /// narrowed lanes; `None` for all other conversions.
    ///
    /// - With AVX-512, `select <1, 1, 0, 0>, (trunc <4 x i64> to <4 x i8>), 0` loses its mask when it
    ///   is stored: it becomes `vpmovqb` to memory, which writes all four lanes.
    /// - On AArch64, a stored `trunc <3 x i64> to <3 x i8>` reads lanes from uninitialized memory.
    ///
    /// Among all widths, lane counts and masks only these are wrong. Narrowing in steps does not
    /// help, because LLVM combines the steps. It does not recognize a shuffle as a conversion.
    fn low_bytes(
        &self,
        value: Value<'ctx>,
        from_bits: u32,
        to_bits: u32,
    ) -> Result<Option<Value<'ctx>>> {
        let ir = &self.ir;
        let lanes = match (ir.target.cpu().isa(), width(value)) {
            (VectorIsa::Avx512, Some(4)) => 4,
            (VectorIsa::Neon, Some(3)) => 3,
            _ => return Ok(None),
        };
        if to_bits != 8 {
            return Ok(None);
        }
        let each = from_bits / 8;
        let all = ir.context.i8_type().vec_type(lanes * each);
        let bytes = ir.builder.build_bit_cast(value, all, "")?.into_vector_value();
        let lowest = (0..lanes).map(|lane| i64::from(lane * each));
        Ok(Some(ir.shuffle(bytes, all.get_poison(), lowest)?.into()))
    }

    fn float_to_integer(&self, value: Value<'ctx>, to: DType) -> Result<Value<'ctx>> {
        if width(value).is_some() && self.ir.target.cpu().isa() != VectorIsa::Neon {
            return self.float_lanes_to_integers(value, to);
        }
        let name = if to.is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
        let result = widened(self.integer_type(to).as_basic_type_enum(), value);
        self.ir.intrinsic(name, &[result, value.get_type()], &[value])
    }

    /// The same for vectors on x86, where LLVM 19 scalarizes `fptosi.sat`: comparing and converting
    /// whole vectors is ten times faster.
    fn float_lanes_to_integers(&self, value: Value<'ctx>, to: DType) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let (kind, signed) = (self.integer_type(to), to.is_signed());
        let bits = kind.get_bit_width();
        // Powers of two, so these are exact. Values at or below the minimum saturate to it.
        let above = 2f64.powi(bits as i32 - i32::from(signed));
        let least = if signed { -above } else { 0.0 };
        let (above, least) = (ir.float_like(above, value)?, ir.float_like(least, value)?);
        let is_above = ir.compare_floats(FloatPredicate::OGE, value, above)?;
        // NaN is in no range and becomes zero, and so do negative numbers for unsigned types.
        let is_inside = ir.and(
            ir.compare_floats(FloatPredicate::OLT, value, above)?,
            ir.compare_floats(FloatPredicate::OGE, value, least)?,
        )?;
        let inside = ir.select(is_inside, value, ir.constant_like(0, value)?)?;
        let converted = if bits < 32 {
            let wide = ir.cast(InstructionOpcode::FPToSI, inside, ir.context.i32_type())?;
            self.integer_to_integer(wide, DType::Int32, to)?
        } else if signed {
            ir.cast(InstructionOpcode::FPToSI, inside, kind)?
        } else {
            ir.cast(InstructionOpcode::FPToUI, inside, kind)?
        };
        let ones = u64::MAX >> (64 - bits + u32::from(signed));
        let most = ir.constant_like(ones as i64, converted)?;
        let saturated = ir.select(is_above, most, converted)?;
        if !signed {
            return Ok(saturated);
        }
        let is_below = ir.compare_floats(FloatPredicate::OLT, value, least)?;
        ir.select(is_below, ir.not(most)?, saturated)
    }

    fn integer_to_float(&self, value: Value<'ctx>, from: DType, to: DType) -> Result<Value<'ctx>> {
        let op =
            if from.is_signed() { InstructionOpcode::SIToFP } else { InstructionOpcode::UIToFP };
        // `float` represents all 16-bit integers, `double` all 32-bit ones: one rounding, not two.
        let rounds = to.is_storage_only();
        let between = if rounds && from.bytes() > 2 { DType::Double } else { to };
        let float = self.ir.cast(op, value, self.float_type(between))?;
        if rounds { self.float_to_float(float, between, to) } else { Ok(float) }
    }

    fn float_to_float(&self, value: Value<'ctx>, from: DType, to: DType) -> Result<Value<'ctx>> {
        match (from, to) {
            (DType::Double, to) if to.is_storage_only() => {
                let odd = self.round_to_odd(value)?;
                self.round_to_stored(to, odd)
            }
            (_, to) if to.is_storage_only() => self.round_to_stored(to, value),
            (DType::Double, DType::Double) => Ok(value),
            (_, DType::Double) => {
                self.ir.cast(InstructionOpcode::FPExt, value, self.ir.context.f64_type())
            }
            (DType::Double, _) => {
                self.ir.cast(InstructionOpcode::FPTrunc, value, self.ir.context.f32_type())
            }
            _ => Ok(value),
        }
    }

    /// Converts a `double` to a `float` with rounding to odd, so that a second rounding gives the
    /// result of a single one ([`round_to_odd`](tensorwright_lang::dtype::round_to_odd)).
    fn round_to_odd(&self, value: Value<'ctx>) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let (f32_type, f64_type) = (ir.context.f32_type(), ir.context.f64_type());
        let nearest = ir.cast(InstructionOpcode::FPTrunc, value, f32_type)?;
        let wide = ir.cast(InstructionOpcode::FPExt, nearest, f64_type)?;
        let exact = ir.compare_floats(FloatPredicate::UEQ, wide, value)?;
        let magnitude =
            |value: Value<'ctx>| ir.intrinsic("llvm.fabs", &[value.get_type()], &[value]);
        let above = ir.compare_floats(FloatPredicate::OGT, magnitude(wide)?, magnitude(value)?)?;
        let i32_type = ir.context.i32_type();
        let bits = ir.bitcast(nearest, i32_type)?;
        let step = ir.cast(InstructionOpcode::ZExt, above, i32_type)?;
        let towards_zero = ir.binary(InstructionOpcode::Sub, bits, step)?;
        let odd = ir.or(towards_zero, ir.constant_like(1, bits)?)?;
        ir.select(exact, nearest, ir.bitcast(odd, f32_type)?)
    }
}
