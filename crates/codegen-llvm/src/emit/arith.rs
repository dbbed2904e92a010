//! Emits operators on values of one type.

use inkwell::values::InstructionOpcode;
use inkwell::{FloatPredicate, IntPredicate};
use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, CompareOp};
use tensorwright_lang::program::Index;

use super::ir::{Value, width};
use super::{Active, Emitter};
use crate::error::Result;
use tensorwright_machine::VectorIsa;

impl<'ctx> Emitter<'_, 'ctx> {
    /// Whether `a*b + c` of a type is a single instruction. Otherwise it would be a slow call.
    pub(super) fn fuses(&self, dtype: DType) -> bool {
        dtype.is_float() && self.ir.target.cpu().isa() != VectorIsa::Sse
    }

    pub(super) fn negate(&self, dtype: DType, value: Value<'ctx>) -> Result<Value<'ctx>> {
        if dtype.is_float() {
            return self.ir.negate_float(value);
        }
        if dtype == DType::Bool {
            // -1 is not zero either.
            return Ok(value);
        }
        let zero = self.ir.constant_like(0, value)?;
        self.ir.binary(InstructionOpcode::Sub, zero, value)
    }

    pub(super) fn arith(
        &self,
        op: ArithOp,
        dtype: DType,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let (a, b) = self.ir.unify(a, b)?;
        if dtype.is_float() {
            return self.float_arith(op, dtype, a, b);
        }
        if dtype == DType::Bool {
            return self.bool_arith(op, a, b);
        }
        let opcode = match op {
            ArithOp::Add => InstructionOpcode::Add,
            ArithOp::Sub => InstructionOpcode::Sub,
            ArithOp::Mul => InstructionOpcode::Mul,
            ArithOp::Div | ArithOp::Rem if dtype.is_signed() => {
                return self.floor_division(op == ArithOp::Div, a, b);
            }
            ArithOp::Div | ArithOp::Rem => return self.division(op == ArithOp::Div, a, b),
        };
        self.ir.binary(opcode, a, b)
    }

    fn float_arith(
        &self,
        op: ArithOp,
        dtype: DType,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let opcode = match op {
            ArithOp::Add => InstructionOpcode::FAdd,
            ArithOp::Sub => InstructionOpcode::FSub,
            ArithOp::Mul => InstructionOpcode::FMul,
            ArithOp::Div => InstructionOpcode::FDiv,
            ArithOp::Rem => return self.builtin(Builtin::Fmod, dtype, &[a, b]),
        };
        self.ir.binary(opcode, a, b)
    }

    /// Arithmetic on 0 and 1; the result is true if it is not zero.
    fn bool_arith(&self, op: ArithOp, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        match op {
            ArithOp::Add => self.ir.or(a, b),
            ArithOp::Sub => self.ir.binary(InstructionOpcode::Xor, a, b),
            ArithOp::Mul | ArithOp::Div => self.ir.and(a, b),
            ArithOp::Rem => self.ir.constant_like(0, a),
        }
    }

    /// Unsigned division; division by zero gives 0.
    fn division(&self, quotient: bool, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        let zero = self.ir.constant_like(0, b)?;
        let by_zero = self.ir.compare_ints(IntPredicate::EQ, b, zero)?;
        let divisor = self.raised(b, by_zero, 1)?;
        let op = if quotient { InstructionOpcode::UDiv } else { InstructionOpcode::URem };
        let result = self.ir.binary(op, a, divisor)?;
        self.ir.select(by_zero, zero, result)
    }

    /// Increases a divisor in some lanes.
    ///
    /// This is not a selection between the divisor and a constant: LLVM 19 moves a division into
    /// both sides of a selection, and drops all lanes of a side that is known to be zero in a
    /// single lane, even if that lane is not selected.
    fn raised(&self, divisor: Value<'ctx>, lanes: Value<'ctx>, by: i64) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let (more, zero) = (ir.constant_like(by, divisor)?, ir.constant_like(0, divisor)?);
        ir.add(divisor, ir.select(lanes, more, zero)?)
    }

    /// Signed division that rounds down. Division by zero gives 0, and the one quotient that
    /// overflows wraps around. The machine traps on both, so their operands are replaced.
    fn floor_division(
        &self,
        quotient: bool,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let ir = &self.ir;
        let (zero, minus_one) = (ir.constant_like(0, b)?, ir.constant_like(-1, b)?);
        let by_zero = ir.compare_ints(IntPredicate::EQ, b, zero)?;
        let by_minus_one = ir.compare_ints(IntPredicate::EQ, b, minus_one)?;
        let divisor = self.raised(self.raised(b, by_zero, 1)?, by_minus_one, 2)?;
        let remainder = ir.binary(InstructionOpcode::SRem, a, divisor)?;
        let inexact = ir.compare_ints(IntPredicate::NE, remainder, zero)?;
        let signs = ir.binary(InstructionOpcode::Xor, remainder, divisor)?;
        let differ = ir.compare_ints(IntPredicate::SLT, signs, zero)?;
        let below = ir.and(inexact, differ)?;
        if !quotient {
            let corrected = ir.add(remainder, divisor)?;
            return ir.select(below, corrected, remainder);
        }
        let truncated = ir.binary(InstructionOpcode::SDiv, a, divisor)?;
        let rounded = ir.select(below, ir.add(truncated, minus_one)?, truncated)?;
        let negated = ir.binary(InstructionOpcode::Sub, zero, a)?;
        let result = ir.select(by_minus_one, negated, rounded)?;
        ir.select(by_zero, zero, result)
    }

    /// The minimum or maximum; NaN if one of them is. The term is the first operand and the
    /// accumulator the second, so the NaN test is not on the critical path.
    pub(super) fn extreme(
        &self,
        least: bool,
        dtype: DType,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let (a, b) = self.ir.unify(a, b)?;
        self.builtin(if least { Builtin::Min } else { Builtin::Max }, dtype, &[a, b])
    }

    pub(super) fn compare(
        &self,
        op: CompareOp,
        dtype: DType,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        if dtype.is_float() {
            // With NaN only `!=` holds.
            let predicate = match op {
                CompareOp::Eq => FloatPredicate::OEQ,
                CompareOp::Ne => FloatPredicate::UNE,
                CompareOp::Lt => FloatPredicate::OLT,
                CompareOp::Le => FloatPredicate::OLE,
                CompareOp::Gt => FloatPredicate::OGT,
                CompareOp::Ge => FloatPredicate::OGE,
            };
            return self.ir.compare_floats(predicate, a, b);
        }
        self.ir.compare_ints(integer_predicate(op, dtype.is_signed()), a, b)
    }

    /// A comparison of indices: the terms of their difference against its constant, so more code
    /// can be hoisted.
    pub(super) fn compare_index(
        &mut self,
        op: CompareOp,
        lhs: &Index,
        rhs: &Index,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let (a, b) = (self.index(lhs, active)?, self.index(rhs, active)?);
        let fits = |range: tensorwright_lang::program::Interval| {
            range.within(i32::MIN.into(), i32::MAX.into())
        };
        let ranges = &self.frame.ranges;
        let narrow = width(a).or(width(b)).is_some()
            && fits(ranges.interval(lhs))
            && fits(ranges.interval(rhs));
        let predicate = integer_predicate(op, true);
        if !narrow {
            return self.ir.compare_ints(predicate, a, b);
        }
        let i32_type = self.ir.context.i32_type();
        let a = self.ir.cast(InstructionOpcode::Trunc, a, i32_type)?;
        let b = self.ir.cast(InstructionOpcode::Trunc, b, i32_type)?;
        self.ir.compare_ints(predicate, a, b)
    }
}

fn integer_predicate(op: CompareOp, signed: bool) -> IntPredicate {
    match (op, signed) {
        (CompareOp::Eq, _) => IntPredicate::EQ,
        (CompareOp::Ne, _) => IntPredicate::NE,
        (CompareOp::Lt, true) => IntPredicate::SLT,
        (CompareOp::Le, true) => IntPredicate::SLE,
        (CompareOp::Gt, true) => IntPredicate::SGT,
        (CompareOp::Ge, true) => IntPredicate::SGE,
        (CompareOp::Lt, false) => IntPredicate::ULT,
        (CompareOp::Le, false) => IntPredicate::ULE,
        (CompareOp::Gt, false) => IntPredicate::UGT,
        (CompareOp::Ge, false) => IntPredicate::UGE,
    }
}
