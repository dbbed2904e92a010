//! Emits masks: the active lanes of a vector statement.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue, VectorValue};
use tensorwright_lang::program::{Index, Interval};
use tensorwright_schedule::nest::Lanes;

use super::access::at_lane;
use super::hoist::Key;
use super::ir::{Value, defect};
use super::{Active, Emitter};
use crate::error::{Error, Result};

impl<'ctx> Emitter<'_, 'ctx> {
    /// The lanes in which all conditions are at least zero; `None` for all lanes.
    ///
    /// Masks are computed in the loop that determines them. Masks that no loop changes are
    /// constants.
    pub(super) fn mask(
        &mut self,
        conditions: &[Index],
        lanes: Lanes,
    ) -> Result<Option<VectorValue<'ctx>>> {
        let open: Vec<Index> = conditions
            .iter()
            .filter(|condition| !self.frame.ranges.always(condition))
            .cloned()
            .collect();
        if open.is_empty() {
            return Ok(None);
        }
        let mut level = 0;
        for condition in &open {
            let at_first = at_lane(condition, lanes.var, 0).ok_or_else(overflow)?;
            let settled = self.index_level(&at_first)?;
            level = level.max(settled.ok_or_else(|| defect("a mask that depends on data"))?);
        }
        let value = self.once(level, Key::mask(&open, lanes), |emitter| {
            let mut all: Option<Value<'ctx>> = None;
            for condition in &open {
                let holds = emitter.lanes_where(condition, lanes)?;
                all = Some(match all {
                    Some(all) => emitter.ir.and(all, holds)?,
                    None => holds,
                });
            }
            all.ok_or_else(|| defect("a mask without conditions"))
        })?;
        Ok(Some(value.into_vector_value()))
    }

    /// The lanes in which a condition is at least zero.
    fn lanes_where(&mut self, condition: &Index, lanes: Lanes) -> Result<Value<'ctx>> {
        let active = Active { lanes: Some(lanes), mask: None };
        let zero = self.ir.i64(0).into();
        let constant = |lane: i64| at_lane(condition, lanes.var, lane)?.as_constant();
        let known: Option<Vec<i64>> = (0..lanes.count).map(constant).collect();
        if let Some(known) = known {
            let kind = self.ir.context.bool_type();
            return Ok(self
                .ir
                .constants(kind, known.into_iter().map(|v| i64::from(v >= 0)))
                .into());
        }
        match condition.coefficient_of(lanes.var) {
            Some(-1) => self.lanes_up_to(condition, lanes),
            _ => {
                let value = self.index(condition, active)?;
                let holds = self.ir.compare_ints(IntPredicate::SGE, value, zero)?;
                let count = u32::try_from(lanes.count).map_err(|_| overflow())?;
                Ok(self.ir.splat(holds, count)?.into())
            }
        }
    }

    /// The lanes in which `base - lane` is at least zero, the usual end of a row. Compared in 32
    /// bits, because a register holds twice as many of them.
    fn lanes_up_to(&mut self, condition: &Index, lanes: Lanes) -> Result<Value<'ctx>> {
        let base = at_lane(condition, lanes.var, 0).ok_or_else(overflow)?;
        let range = self.frame.ranges.interval(&base);
        let mut last: IntValue<'ctx> = self.scalar_index(&base, Active::SCALAR)?;
        if !fits_32_bits(range) {
            let (least, most) = (self.ir.i64(-1).into(), self.ir.i64(lanes.count).into());
            let raised = self.ir.uniform_intrinsic("llvm.smax", last.into(), least)?;
            let clamped = self.ir.uniform_intrinsic("llvm.smin", raised, most)?;
            last = clamped.into_int_value();
        }
        let i32_type = self.ir.context.i32_type();
        let last = self.ir.cast(InstructionOpcode::Trunc, last.into(), i32_type)?;
        let numbers = self.ir.constants(i32_type, 0..lanes.count).into();
        self.ir.compare_ints(IntPredicate::SLE, numbers, last)
    }

    /// The active lanes in which a condition also holds (or, if `holds` is false, does not hold).
    pub(super) fn narrowed(
        &self,
        active: Active<'ctx>,
        condition: Value<'ctx>,
        holds: bool,
    ) -> Result<Active<'ctx>> {
        let condition = if holds { condition } else { self.ir.not(condition)? };
        let mask = match active.mask {
            Some(mask) => self.ir.and(condition, mask.into())?,
            None => condition,
        };
        match mask {
            BasicValueEnum::VectorValue(mask) => Ok(Active { mask: Some(mask), ..active }),
            _ => Err(defect("a mask without lanes")),
        }
    }
}

fn fits_32_bits(range: Interval) -> bool {
    range.within(i128::from(i32::MIN), i128::from(i32::MAX))
}

fn overflow() -> Error {
    Error::Build("a mask overflows".into())
}
