//! Emits stores: assignments and updates of buffer elements.

use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{Expr, Read};
use tensorwright_schedule::nest::{Lanes, Store};

use super::function::Variable;
use super::ir::Value;
use super::read::offset;
use super::{Active, Emitter};
use crate::error::{Error, Result};

/// The most lanes of a statement.
const MAX_LANES: i64 = 64;

impl<'ctx> Emitter<'_, 'ctx> {
    pub(super) fn store(&mut self, store: &Store) -> Result<()> {
        let Some(lanes) = store.lanes else {
            return self.when(&store.mask, |emitter| emitter.assign(store, Active::SCALAR));
        };
        if !(1..=MAX_LANES).contains(&lanes.count) {
            return Err(Error::Build(format!("a vector of {} lanes", lanes.count)));
        }
        self.frame.ranges.insert(lanes.var, lanes.count);
        if lanes.count == 1 {
            let zero = Variable { value: self.ir.i64(0), level: 0 };
            self.frame.vars.insert(lanes.var, zero);
            return self.when(&store.mask, |emitter| emitter.assign(store, Active::SCALAR));
        }
        // If conditions remove the recurrence, lanes have no order.
        match lanes.in_order && store.is_recurrence() {
            true => self.running_store(store, lanes),
            false => self.vector_store(store, lanes),
        }
    }

    /// A vector store. A condition that all lanes share becomes a branch, not a mask.
    fn vector_store(&mut self, store: &Store, lanes: Lanes) -> Result<()> {
        let is_lane = |var| var == lanes.var;
        let (varying, common): (Vec<_>, Vec<_>) =
            store.mask.iter().cloned().partition(|condition| condition.mentions(&is_lane));
        self.when(&common, |emitter| {
            let mask = emitter.mask(&varying, lanes)?;
            emitter.assign(store, Active { lanes: Some(lanes), mask })
        })
    }

    fn assign(&mut self, store: &Store, active: Active<'ctx>) -> Result<()> {
        let buffer = self.buffer(store.buffer)?;
        if buffer.shape.len() != store.subscripts.len() {
            return Err(Error::Build(format!("`{}` has another rank", buffer.name)));
        }
        if let (Some(op), Some(element)) = (store.combine, store.checked_element()) {
            return self.combine_checked(store, op, &element, active);
        }
        let offset = offset(buffer, &store.subscripts)?;
        if let (Some(op), Some(lanes)) = (store.combine, active.lanes)
            && !offset.mentions(&|var| var == lanes.var)
        {
            let term = self.across_lanes(store, op, buffer.dtype, lanes, active)?;
            let old = self.load(store.buffer, &offset, Active::SCALAR)?;
            let old = self.decode(buffer.dtype, old)?;
            let value = self.both(op, buffer.dtype, old, term)?;
            let stored = self.encode(buffer.dtype, value)?;
            return self.store_to(store.buffer, &offset, stored, Active::SCALAR);
        }
        let value = match store.combine {
            None => self.expr(&store.value, active)?,
            Some(op) => {
                let old = self.load(store.buffer, &offset, active)?;
                let old = self.decode(buffer.dtype, old)?;
                self.combine(op, buffer.dtype, old, &store.value, active)?
            }
        };
        let stored = self.encode(buffer.dtype, value)?;
        self.store_to(store.buffer, &offset, stored, active)
    }

    /// A step of a reduction at an element whose position comes from data.
    fn combine_checked(
        &mut self,
        store: &Store,
        op: ReductionOp,
        element: &Read,
        active: Active<'ctx>,
    ) -> Result<()> {
        let buffer = self.buffer(store.buffer)?;
        let place = self.checked_place(element, buffer, active)?;
        let old = self.load_from(store.buffer, &place, active)?;
        let old = self.decode(buffer.dtype, old)?;
        let value = self.combine(op, buffer.dtype, old, &store.value, active)?;
        let stored = self.encode(buffer.dtype, value)?;
        self.store_at(store.buffer, &place, stored, active)
    }

    /// One step of a reduction.
    fn combine(
        &mut self,
        op: ReductionOp,
        dtype: DType,
        old: Value<'ctx>,
        value: &Expr,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        if op == ReductionOp::Sum
            && let Some(sum) = self.fused_sum(dtype, old, value, active)?
        {
            return Ok(sum);
        }
        let value = self.expr(value, active)?;
        self.both(op, dtype, old, value)
    }
}
