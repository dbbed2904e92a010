//! Statements whose lanes are steps of a recurrence: `y(t) = y(t - 1) op term`, for an associative operator.
//!
//! Terms of neighbours are combined, then those of pairs, and so on; what came before the first lane is combined with all
//! of them in the end, so that vectors wait for each other once:
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

/// The last result of a recurrence, in a register.
pub(super) struct Last<'ctx> {
    buffer: BufferId,
    /// Where it was stored.
    offset: Index,
    /// The result in all lanes.
    value: VectorValue<'ctx>,
    /// Where it is known.
    block: BasicBlock<'ctx>,
}

impl Last<'_> {
    /// Whether a store to a buffer leaves it as it is.
    pub(super) fn is_left_by(&self, id: BufferId) -> bool {
        self.buffer != id
    }
}

impl<'ctx> Emitter<'_, 'ctx> {
    /// A statement whose lanes are steps of a recurrence. Only the last ones of them may not take part.
    pub(super) fn running_store(&mut self, store: &Store, lanes: Lanes) -> Result<()> {
        let first = store.mask.iter().map(|condition| at_lane(condition, lanes.var, 0));
        let first: Option<Vec<Index>> = first.collect();
        let first = first.ok_or_else(|| defect("a mask overflows"))?;
        // Where the first does not take part, what it would read need not be there.
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
            // The same number as in the last lane, which the next vector has to wait for less long.
            let end = self.ir.shuffle(own, own, (0..lanes.count).map(|_| lanes.count - 1))?;
            let value = self.both(op, dtype, before.into(), end.into())?.into_vector_value();
            let offset = at_lane(&offset, lanes.var, lanes.count - 1);
            let offset = offset.ok_or_else(|| defect("an offset overflows"))?;
            self.last.push(Last { buffer: store.buffer, offset, value, block });
        }
        Ok(())
    }

    /// For every lane, its own term and those of all lanes before it combined.
    fn up_to_each(
        &mut self,
        op: ReductionOp,
        dtype: DType,
        terms: VectorValue<'ctx>,
    ) -> Result<VectorValue<'ctx>> {
        let count = i64::from(terms.get_type().get_size());
        let nothing = match op {
            // Of a number and itself, either is the number, NaN too.
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

    /// What comes before the first lane, in all lanes.
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
