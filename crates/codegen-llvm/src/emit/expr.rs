//! Emits expressions.
//!
//! In expressions a `bool` is an `i1` and the 16-bit floats are `float`; all other types keep their
//! name. A read only happens if the language evaluates it: under a condition that all lanes share,
//! behind a branch; under a divergent condition, with a mask.

use inkwell::values::{BasicValueEnum, InstructionOpcode};
use tensorwright_lang::builtin::Builtin;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, LogicOp, UnaryOp};
use tensorwright_lang::program::{Expr, Index, Scalar};

use super::ir::{Value, defect};
use super::read::offset;
use super::{Active, Emitter};
use crate::error::Result;
use crate::math::Math;

impl<'ctx> Emitter<'_, 'ctx> {
    /// The type of an expression.
    pub(super) fn dtype(&self, expr: &Expr) -> DType {
        expr.dtype(&|id| self.buffer(id).map_or(DType::Float, |buffer| buffer.dtype))
    }

    /// The value of an expression: a vector only if it depends on the lane.
    pub(super) fn expr(&mut self, expr: &Expr, active: Active<'ctx>) -> Result<Value<'ctx>> {
        self.charge()?;
        match expr {
            Expr::Const(scalar) => Ok(self.constant(*scalar)),
            Expr::Index(index, dtype) => self.index_value(index, *dtype, active),
            Expr::Read(read) => self.read(read, active),
            Expr::Unary(UnaryOp::Neg, operand) => {
                let value = self.expr(operand, active)?;
                self.negate(self.dtype(operand), value)
            }
            Expr::Unary(UnaryOp::Not, operand) => {
                let value = self.condition(operand, active)?;
                self.ir.not(value)
            }
            Expr::Arith(op, lhs, rhs) => self.arithmetic(*op, lhs, rhs, active),
            Expr::Compare(op, lhs, rhs) => {
                let (a, b) = (self.expr(lhs, active)?, self.expr(rhs, active)?);
                self.compare(*op, self.dtype(lhs), a, b)
            }
            Expr::CompareIndex(op, lhs, rhs) => self.compare_index(*op, lhs, rhs, active),
            Expr::Logic(op, lhs, rhs) => self.logic(*op, lhs, rhs, active),
            Expr::Select(condition, then, other) => self.choose(condition, then, other, active),
            Expr::Call(builtin, args) => self.call(*builtin, args, active),
            Expr::Cast(dtype, operand) => {
                let value = self.expr(operand, active)?;
                self.cast(value, self.dtype(operand), *dtype)
            }
        }
    }

    /// A constant.
    fn constant(&self, scalar: Scalar) -> Value<'ctx> {
        let context = self.ir.context;
        match scalar.dtype() {
            DType::Double => context.f64_type().const_float(scalar.as_f64()).into(),
            dtype if dtype.is_float() => context.f32_type().const_float(scalar.as_f64()).into(),
            DType::Bool => {
                context.bool_type().const_int(u64::from(scalar.as_integer() != 0), false).into()
            }
            dtype => self.integer_type(dtype).const_int(scalar.as_integer() as u64, false).into(),
        }
    }

    /// An index, converted to a type.
    fn index_value(
        &mut self,
        index: &Index,
        dtype: DType,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let range = self.frame.ranges.interval(index);
        let value = self.index(index, active)?;
        if dtype.is_float() && range.within(i32::MIN.into(), i32::MAX.into()) {
            // Conversions from 32 bits are a single instruction everywhere.
            let narrow =
                self.ir.cast(InstructionOpcode::Trunc, value, self.ir.context.i32_type())?;
            return self.cast(narrow, DType::Int32, dtype);
        }
        self.cast(value, DType::Int64, dtype)
    }

    fn arithmetic(
        &mut self,
        op: ArithOp,
        lhs: &Expr,
        rhs: &Expr,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let dtype = self.dtype(lhs);
        if op == ArithOp::Add || op == ArithOp::Sub {
            // `a*b + c` and similar forms as one instruction.
            if is_product(lhs) && self.fuses(dtype) {
                let addend = self.expr(rhs, active)?;
                let addend = if op == ArithOp::Sub { self.negate(dtype, addend)? } else { addend };
                return self.fused(lhs, false, addend, active);
            }
            if is_product(rhs) && self.fuses(dtype) {
                let addend = self.expr(lhs, active)?;
                return self.fused(rhs, op == ArithOp::Sub, addend, active);
            }
        }
        let (a, b) = (self.expr(lhs, active)?, self.expr(rhs, active)?);
        self.arith(op, dtype, a, b)
    }

    /// `old + value` if the value is a product that can be fused with the addition.
    pub(super) fn fused_sum(
        &mut self,
        dtype: DType,
        old: Value<'ctx>,
        value: &Expr,
        active: Active<'ctx>,
    ) -> Result<Option<Value<'ctx>>> {
        if !is_product(value) || !self.fuses(dtype) {
            return Ok(None);
        }
        self.fused(value, false, old, active).map(Some)
    }

    /// `product + addend`, or `addend - product`, rounded once.
    fn fused(
        &mut self,
        product: &Expr,
        subtract: bool,
        addend: Value<'ctx>,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let Expr::Arith(ArithOp::Mul, x, y) = product else {
            return Err(defect("a product that is none"));
        };
        let (mut a, b) = (self.expr(x, active)?, self.expr(y, active)?);
        if subtract {
            a = self.negate(self.dtype(x), a)?;
        }
        let (a, b) = self.ir.unify(a, b)?;
        let (a, addend) = self.ir.unify(a, addend)?;
        let b = self.ir.like(b, addend)?;
        self.ir.intrinsic("llvm.fma", &[addend.get_type()], &[a, b, addend])
    }

    fn call(
        &mut self,
        builtin: Builtin,
        args: &[Expr],
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let dtype = args.first().map_or(DType::Float, |arg| self.dtype(arg));
        let mut values: Vec<Value<'ctx>> =
            args.iter().map(|arg| self.expr(arg, active)).collect::<Result<_>>()?;
        if let Some(wide) = values.iter().copied().find(|value| value.is_vector_value()) {
            for value in &mut values {
                *value = self.ir.like(*value, wide)?;
            }
        }
        self.builtin(builtin, dtype, &values)
    }

    /// A builtin of values with the same number of lanes.
    pub(super) fn builtin(
        &self,
        builtin: Builtin,
        dtype: DType,
        values: &[Value<'ctx>],
    ) -> Result<Value<'ctx>> {
        Math::new(self.ir.module, &self.ir.builder).call(builtin, values, dtype.is_signed())
    }

    /// A truth value; other types than `bool` are compared with zero.
    fn condition(&mut self, expr: &Expr, active: Active<'ctx>) -> Result<Value<'ctx>> {
        let value = self.expr(expr, active)?;
        self.cast(value, self.dtype(expr), DType::Bool)
    }

    /// `&&` and `||`: the right side is only evaluated if the left side does not decide.
    fn logic(
        &mut self,
        op: LogicOp,
        lhs: &Expr,
        rhs: &Expr,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let left = self.condition(lhs, active)?;
        let open_if = op == LogicOp::And;
        if self.is_speculatable(rhs) {
            let right = self.condition(rhs, active)?;
            return if open_if { self.ir.and(left, right) } else { self.ir.or(left, right) };
        }
        if left.is_vector_value() {
            let open = self.narrowed(active, left, open_if)?;
            let right = self.condition(rhs, open)?;
            return if open_if { self.ir.and(left, right) } else { self.ir.or(left, right) };
        }
        let decided = self.ir.context.bool_type().const_int(u64::from(!open_if), false).into();
        let right = |emitter: &mut Self| emitter.condition(rhs, active);
        if open_if {
            self.branch(left, right, |_| Ok(decided))
        } else {
            self.branch(left, |_| Ok(decided), right)
        }
    }

    /// `condition ? then : other`.
    fn choose(
        &mut self,
        condition: &Expr,
        then: &Expr,
        other: &Expr,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let condition = self.condition(condition, active)?;
        if self.is_speculatable(then) && self.is_speculatable(other) {
            let (a, b) = (self.expr(then, active)?, self.expr(other, active)?);
            return self.ir.select(condition, a, b);
        }
        if condition.is_vector_value() {
            let (yes, no) =
                (self.narrowed(active, condition, true)?, self.narrowed(active, condition, false)?);
            let (a, b) = (self.expr(then, yes)?, self.expr(other, no)?);
            return self.ir.select(condition, a, b);
        }
        self.branch(
            condition,
            |emitter| emitter.expr(then, active),
            |emitter| emitter.expr(other, active),
        )
    }

    /// One of two values behind a branch.
    fn branch(
        &mut self,
        condition: Value<'ctx>,
        then: impl FnOnce(&mut Self) -> Result<Value<'ctx>>,
        other: impl FnOnce(&mut Self) -> Result<Value<'ctx>>,
    ) -> Result<Value<'ctx>> {
        let BasicValueEnum::IntValue(condition) = condition else {
            return Err(defect("a branch on lanes"));
        };
        let [yes, no, after] =
            [(); 3].map(|()| self.ir.context.append_basic_block(self.frame.function, ""));
        self.ir.builder.build_conditional_branch(condition, yes, no)?;
        self.ir.builder.position_at_end(yes);
        let a = then(self)?;
        let yes = self.block()?;
        self.ir.builder.position_at_end(no);
        let b = other(self)?;
        // Each side is broadcast if the other one has lanes.
        let b = self.ir.like(b, a)?;
        let no = self.block()?;
        self.ir.builder.build_unconditional_branch(after)?;
        self.ir.builder.position_at_end(yes);
        let a = self.ir.like(a, b)?;
        self.ir.builder.build_unconditional_branch(after)?;
        self.ir.builder.position_at_end(after);
        let phi = self.ir.builder.build_phi(a.get_type(), "")?;
        phi.add_incoming(&[(&a, yes), (&b, no)]);
        Ok(phi.as_basic_value())
    }

    /// Whether an expression may be evaluated speculatively: it reads nothing, or only addresses
    /// that are valid in all iterations. Nothing else can fail.
    fn is_speculatable(&self, expr: &Expr) -> bool {
        let mut fine = true;
        expr.walk_reads(&mut |read| {
            fine &= read.checked.is_empty()
                && self.buffer(read.tensor).is_ok_and(|buffer| {
                    if buffer.run_time.is_some() {
                        return buffer.holds(&read.subscripts, &self.frame.ranges);
                    }
                    let elements = i128::from(buffer.elements());
                    let in_memory =
                        |offset: Index| self.frame.ranges.interval(&offset).within(0, elements);
                    offset(buffer, &read.subscripts).is_ok_and(in_memory)
                });
        });
        fine
    }
}

fn is_product(expr: &Expr) -> bool {
    matches!(expr, Expr::Arith(ArithOp::Mul, ..))
}
