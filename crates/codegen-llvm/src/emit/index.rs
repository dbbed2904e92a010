//! Emits index arithmetic modulo 2^64, and addresses.
//!
//! Lowering guarantees that this is exact where it matters.

use inkwell::IntPredicate;
use inkwell::values::{InstructionOpcode, IntValue, PointerValue};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::{Atom, Index, Term};
use tensorwright_schedule::nest::BufferId;

use super::hoist::Key;
use super::ir::{Value, defect};
use super::{Active, Emitter};
use crate::error::{Error, Result};

impl<'ctx> Emitter<'_, 'ctx> {
    /// The address of an element that is the same for all lanes: hoisted sums of terms, outermost
    /// first, then values from data, then the constant.
    ///
    /// The partial sums may point outside of the buffer, so the arithmetic is not `inbounds`.
    pub(super) fn address(
        &mut self,
        buffer: BufferId,
        offset: &Index,
        active: Active<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let mut pointer = self.pointer(buffer)?;
        let dtype = self.buffer(buffer)?.dtype;
        let split = self.split(offset.terms())?;
        let mut known: Vec<Term> = Vec::new();
        for (level, terms) in split.levels {
            known.extend(terms.iter().cloned());
            let key = Key::Pointer(buffer, known.clone());
            let value = self.once(level, key, |emitter| {
                let sum = emitter.sum(&terms, Active::SCALAR)?;
                Ok(emitter.element(dtype, pointer, sum)?.into())
            })?;
            pointer = value.into_pointer_value();
        }
        if !split.here.is_empty() {
            let sum = self.sum(&split.here, active)?;
            pointer = self.element(dtype, pointer, sum)?;
        }
        self.displaced(dtype, pointer, offset.constant_term())
    }

    /// The address at a constant distance, in elements.
    pub(super) fn displaced(
        &self,
        dtype: DType,
        pointer: PointerValue<'ctx>,
        elements: i64,
    ) -> Result<PointerValue<'ctx>> {
        if elements == 0 {
            return Ok(pointer);
        }
        self.element(dtype, pointer, self.ir.i64(elements))
    }

    /// An index that is the same for all lanes.
    pub(super) fn scalar_index(
        &mut self,
        index: &Index,
        active: Active<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let split = self.split(index.terms())?;
        let mut value: Option<IntValue<'ctx>> = None;
        let mut known: Vec<Term> = Vec::new();
        for (level, terms) in split.levels {
            known.extend(terms.iter().cloned());
            let sum = self.once(level, Key::Sum(known.clone()), |emitter| {
                let sum = emitter.sum(&terms, Active::SCALAR)?;
                Ok(match value {
                    Some(value) => emitter.ir.builder.build_int_add(value, sum, "")?,
                    None => sum,
                }
                .into())
            })?;
            value = Some(sum.into_int_value());
        }
        if !split.here.is_empty() {
            let sum = self.sum(&split.here, active)?;
            value = Some(match value {
                Some(value) => self.ir.builder.build_int_add(value, sum, "")?,
                None => sum,
            });
        }
        let constant = self.ir.i64(index.constant_term());
        match value {
            None => Ok(constant),
            Some(value) if index.constant_term() == 0 => Ok(value),
            Some(value) => Ok(self.ir.builder.build_int_add(value, constant, "")?),
        }
    }

    /// A sum of terms at the current insertion point.
    fn sum(&mut self, terms: &[Term], active: Active<'ctx>) -> Result<IntValue<'ctx>> {
        let mut sum: Option<IntValue<'ctx>> = None;
        for term in terms {
            let atom = self.atom(&term.atom, active)?;
            let Ok(mut product) = IntValue::try_from(atom) else {
                return Err(defect("an index that differs between lanes"));
            };
            if term.coefficient != 1 {
                let coefficient = self.ir.i64(term.coefficient);
                product = self.ir.builder.build_int_mul(product, coefficient, "")?;
            }
            sum = Some(match sum {
                Some(sum) => self.ir.builder.build_int_add(sum, product, "")?,
                None => product,
            });
        }
        Ok(sum.unwrap_or_else(|| self.ir.i64(0)))
    }

    /// An index: a scalar if it is the same for all lanes, otherwise a vector.
    pub(super) fn index(&mut self, index: &Index, active: Active<'ctx>) -> Result<Value<'ctx>> {
        let Some(lanes) = active.lanes else {
            return Ok(self.scalar_index(index, active)?.into());
        };
        let varies = |term: &&Term| Index::atom(term.atom.clone()).mentions(&|v| v == lanes.var);
        let varying: Vec<Term> = index.terms().iter().filter(varies).cloned().collect();
        if varying.is_empty() {
            return Ok(self.scalar_index(index, active)?.into());
        }
        let uniform = index
            .terms()
            .iter()
            .filter(|term| !varies(term))
            .try_fold(Index::constant(index.constant_term()), |sum, term| {
                sum.add(&Index::atom(term.atom.clone()).scale(term.coefficient)?)
            });
        let mut sum: Value<'ctx> =
            self.scalar_index(&uniform.ok_or_else(overflow)?, active)?.into();
        for term in varying {
            let atom = self.atom(&term.atom, active)?;
            let coefficient = self.ir.i64(term.coefficient).into();
            let product = match term.coefficient {
                1 => atom,
                _ => self.ir.binary(InstructionOpcode::Mul, atom, coefficient)?,
            };
            sum = self.ir.add(sum, product)?;
        }
        Ok(sum)
    }

    fn atom(&mut self, atom: &Atom, active: Active<'ctx>) -> Result<Value<'ctx>> {
        match atom {
            Atom::Axis(var) => match (self.frame.vars.get(var), active.lanes) {
                (_, Some(lanes)) if lanes.var == *var => {
                    Ok(self.ir.constants(self.ir.context.i64_type(), 0..lanes.count).into())
                }
                (Some(variable), _) => Ok(variable.value.into()),
                (None, _) => Err(Error::Build("a variable is used outside of its loop".into())),
            },
            Atom::Div(inner, divisor) => self.quotient(inner, *divisor, active, true),
            Atom::Mod(inner, divisor) => self.quotient(inner, *divisor, active, false),
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let (x, y) = (self.index(a, active)?, self.index(b, active)?);
                let is_min = matches!(atom, Atom::Min(..));
                self.ir.uniform_intrinsic(if is_min { "llvm.smin" } else { "llvm.smax" }, x, y)
            }
            Atom::Product(inner, factor) => {
                let factor = self.atom(&Atom::Axis(*factor), active)?;
                let inner = self.index(inner, active)?;
                self.ir.binary(InstructionOpcode::Mul, inner, factor)
            }
            Atom::Value(expr) => {
                let dtype = self.dtype(expr);
                let value = self.expr(expr, active)?;
                self.cast(value, dtype, DType::Int64)
            }
        }
    }

    /// The quotient or remainder of an index by a positive constant, rounded down.
    fn quotient(
        &mut self,
        index: &Index,
        divisor: i64,
        active: Active<'ctx>,
        quotient: bool,
    ) -> Result<Value<'ctx>> {
        let range = self.frame.ranges.interval(index);
        let value = self.index(index, active)?;
        let narrow = range.within(0, 1 << 31) && value.is_vector_value() && divisor < 1 << 31;
        if narrow {
            // Most targets have no 64-bit vector multiplication for the division.
            let value =
                self.ir.cast(InstructionOpcode::Trunc, value, self.ir.context.i32_type())?;
            let divisor = self.ir.i32(divisor).into();
            let op = if quotient { InstructionOpcode::UDiv } else { InstructionOpcode::URem };
            let result = self.ir.binary(op, value, divisor)?;
            return self.ir.cast(InstructionOpcode::ZExt, result, self.ir.context.i64_type());
        }
        let by: Value<'ctx> = self.ir.i64(divisor).into();
        if range.lo >= 0 {
            let op = if quotient { InstructionOpcode::UDiv } else { InstructionOpcode::URem };
            return self.ir.binary(op, value, by);
        }
        if divisor.count_ones() == 1 {
            // Two's complement rounds down.
            let shift = self.ir.i64(i64::from(divisor.trailing_zeros())).into();
            let mask = self.ir.i64(divisor - 1).into();
            return if quotient {
                self.ir.binary(InstructionOpcode::AShr, value, shift)
            } else {
                self.ir.and(value, mask)
            };
        }
        self.floor_by_constant(value, by, quotient)
    }

    fn floor_by_constant(
        &self,
        value: Value<'ctx>,
        by: Value<'ctx>,
        quotient: bool,
    ) -> Result<Value<'ctx>> {
        let remainder = self.ir.binary(InstructionOpcode::SRem, value, by)?;
        let zero = self.ir.constant_like(0, remainder)?;
        let negative = self.ir.compare_ints(IntPredicate::SLT, remainder, zero)?;
        if quotient {
            let truncated = self.ir.binary(InstructionOpcode::SDiv, value, by)?;
            let one_less = self.ir.add(truncated, self.ir.constant_like(-1, truncated)?)?;
            return self.ir.select(negative, one_less, truncated);
        }
        let above = self.ir.add(remainder, by)?;
        self.ir.select(negative, above, remainder)
    }
}

fn overflow() -> Error {
    Error::Build("index arithmetic overflows".into())
}
