//! Emits vectorized recurrences as parallel prefix computations.
//!
//! The recurrence has the form `y(t) = y(t - 1) op term`, with an associative operator.
//!
//! Neighboring terms are combined, then pairs, and so on. The result before the first lane is
//! combined with all lanes at the end, so each vector waits for the previous one only once:
//!
//! ```text
//! v = a b c d
//! v = a ab bc cd              v op (v one lane up)
//! v = a ab abc abcd           v op (v two lanes up)
//! v = ya yab yabc yabcd       y op v
//! ```

use inkwell::basic_block::BasicBlock;
use inkwell::values::VectorValue;
use tensorwright_lang::dtype::DType;
use tensorwright_lang::ops::ReductionOp;
use tensorwright_lang::program::{Expr, Index, Running};
use tensorwright_schedule::canonical::neutral;
use tensorwright_schedule::nest::{BufferId, Lanes, Simplify, Store};

use super::access::{AtLane, at_lane};
use super::ir::defect;
use super::read::offset;
use super::{Active, Emitter};
use crate::error::Result;

/// The latest result of a recurrence, in a register.
pub(super) struct Last<'ctx> {
    buffer: BufferId,
    /// The address to which it was stored.
    offset: Index,
    /// The result in all lanes.
    value: VectorValue<'ctx>,
    /// The block in which it is known.
    block: BasicBlock<'ctx>,
}

impl Last<'_> {
    /// Whether a store to a buffer leaves it valid.
    pub(super) fn is_left_by(&self, id: BufferId) -> bool {
        self.buffer != id
    }
}

impl<'ctx> Emitter<'_, 'ctx> {
    /// A store whose lanes are steps of a recurrence. Only the last lanes may be idle.
    pub(super) fn running_store(&mut self, store: &Store, lanes: Lanes) -> Result<()> {
        let first = store.mask.iter().map(|condition| at_lane(condition, lanes.var, 0));
        let first: Option<Vec<Index>> = first.collect();
        let first = first.ok_or_else(|| defect("a mask overflows"))?;
        // If the first lane is idle, the element that it would read may not exist.
        self.when(&first, |emitter| {
            let is_lane = |var| var == lanes.var;
            let varying = store.mask.iter().filter(|it| it.mentions(&is_lane)).cloned();
            let mask = emitter.mask(&varying.collect::<Vec<_>>(), lanes)?;
            emitter.steps(store, lanes, mask)
        })
    }

    fn steps(
        &mut self,
        store: &Store,
        lanes: Lanes,
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<()> {
        let running = Running::of(&store.value, store.buffer);
        let running = running.ok_or_else(|| defect("lanes in order of another statement"))?;
        let (op, buffer) = (running.op, self.buffer(store.buffer)?);
        let (dtype, width) = (buffer.dtype, lanes.count as u32);
        let active = Active { lanes: Some(lanes), mask };
        let term = self.expr(&running.term, active)?;
        let terms = self.ir.splat(term, width)?;
        let own = self.up_to_each(op, dtype, terms)?;
        let before = self.before_first(running.before, store.buffer, lanes)?;
        let value = self.both(op, dtype, before.into(), own.into())?;
        let stored = self.encode(dtype, value)?;
        let offset = offset(buffer, &store.subscripts)?;
        let block = self.block()?;
        let kept: Vec<Last<'ctx>> =
            self.last.drain(..).filter(|last| last.block == block).collect();
        self.store_to(store.buffer, &offset, stored, active)?;
        self.last = kept;
        if mask.is_none() {
            // The same number as in the last lane, with a shorter latency for the next vector.
            let end = self.ir.shuffle(own, own, (0..lanes.count).map(|_| lanes.count - 1))?;
            let value = self.both(op, dtype, before.into(), end.into())?.into_vector_value();
            let offset = at_lane(&offset, lanes.var, lanes.count - 1);
            let offset = offset.ok_or_else(|| defect("an offset overflows"))?;
            self.last.push(Last { buffer: store.buffer, offset, value, block });
        }
        Ok(())
    }

    /// For every lane, the combination of its term and those of all lanes before it.
    fn up_to_each(
        &mut self,
        op: ReductionOp,
        dtype: DType,
        terms: VectorValue<'ctx>,
    ) -> Result<VectorValue<'ctx>> {
        let count = i64::from(terms.get_type().get_size());
        let nothing = match op {
            // A minimum or maximum is idempotent, also for NaN.
            ReductionOp::Min | ReductionOp::Max => None,
            ReductionOp::Sum | ReductionOp::Product => {
                let neutral = self.expr(&neutral(op, dtype), Active::SCALAR)?;
                Some(self.ir.splat(neutral, count as u32)?)
            }
        };
        let (mut value, mut by) = (terms, 1);
        while by < count {
            let other = nothing.unwrap_or(value);
            let up = |lane: i64| match lane < by {
                true => lane + if nothing.is_some() { count } else { 0 },
                false => lane - by,
            };
            let moved = self.ir.shuffle(value, other, (0..count).map(up))?;
            value = self.both(op, dtype, moved.into(), value.into())?.into_vector_value();
            by *= 2;
        }
        Ok(value)
    }

    /// The result before the first lane, in all lanes.
    fn before_first(
        &mut self,
        before: &Expr,
        id: BufferId,
        lanes: Lanes,
    ) -> Result<VectorValue<'ctx>> {
        let overflows = || defect("an element before the first lane overflows");
        let before = before.rewrite(&mut AtLane(lanes.var, 0)).ok_or_else(overflows)?;
        let before = before.rewrite(&mut Simplify(&self.frame.ranges)).ok_or_else(overflows)?;
        let width = lanes.count as u32;
        if let Expr::Read(read) = &before
            && read.tensor == id
        {
            let (offset, block) = (offset(self.buffer(id)?, &read.subscripts)?, self.block()?);
            let is_it = |last: &&Last<'ctx>| {
                last.buffer == id && last.offset == offset && last.block == block
            };
            let known = self.last.iter().find(is_it).map(|last| last.value);
            if let Some(value) = known {
                if value.get_type().get_size() == width {
                    return Ok(value);
                }
                let value = self.ir.lane(value.into(), 0)?;
                return self.ir.splat(value, width);
            }
        }
        let value = self.expr(&before, Active::SCALAR)?;
        self.ir.splat(value, width)
    }
}
