//! Emits reductions across vector lanes: `element op= all lanes`.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::{ArithOp, ReductionOp};
use tensorwright_schedule::canonical::neutral;
use tensorwright_schedule::nest::{Lanes, Store};

use super::ir::Value;
use super::{Active, Emitter};
use crate::error::Result;

impl<'ctx> Emitter<'_, 'ctx> {
    /// The values of all active lanes, combined into one.
    pub(super) fn across_lanes(
        &mut self,
        store: &Store,
        op: ReductionOp,
        dtype: DType,
        lanes: Lanes,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let value = self.expr(&store.value, active)?;
        let neutral = self.expr(&neutral(op, dtype), Active::SCALAR)?;
        let width = lanes.count as u32;
        let neutral = self.ir.splat(neutral, width)?;
        let mut value = self.ir.splat(value, width)?;
        if let Some(mask) = active.mask {
            value = self.ir.select(mask.into(), value.into(), neutral.into())?.into_vector_value();
        }
        // Combines the two halves until one lane is left, so their number must be a power of two.
        let mut count = i64::from(width.next_power_of_two());
        let last = i64::from(width);
        if count > last {
            value = self.ir.shuffle(value, neutral, (0..count).map(|lane| lane.min(last)))?;
        }
        while count > 1 {
            count /= 2;
            let low = self.ir.shuffle(value, value, 0..count)?;
            let high = self.ir.shuffle(value, value, count..2 * count)?;
            value = self.both(op, dtype, low.into(), high.into())?.into_vector_value();
        }
        self.ir.lane(value.into(), 0)
    }

    /// Combines two values.
    pub(super) fn both(
        &mut self,
        op: ReductionOp,
        dtype: DType,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        match op {
            ReductionOp::Sum => self.arith(ArithOp::Add, dtype, a, b),
            ReductionOp::Product => self.arith(ArithOp::Mul, dtype, a, b),
            ReductionOp::Min | ReductionOp::Max => {
                self.extreme(op == ReductionOp::Min, dtype, b, a)
            }
        }
    }
}
