//! Emits reads, with bounds checks for subscripts from data.

use inkwell::AtomicOrdering;
use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, InstructionOpcode, PointerValue, VectorValue};
use tensorwright_lang::program::{Index, Read};
use tensorwright_schedule::nest::{Buffer, BufferId};

use super::access::Access;
use super::ir::{Value, defect};
use super::{Active, Emitter};
use crate::error::{Error, Result};

/// The addresses of the lanes of a checked access.
pub(super) enum LaneAddresses<'ctx> {
    /// All lanes access one element.
    One(PointerValue<'ctx>),
    /// Elements at known distances from an address.
    Row(PointerValue<'ctx>, Vec<i64>),
    /// Elements at these offsets.
    Anywhere(VectorValue<'ctx>),
}

impl<'ctx> Emitter<'_, 'ctx> {
    /// The value of a read, in its expression type.
    pub(super) fn read(&mut self, read: &Read, active: Active<'ctx>) -> Result<Value<'ctx>> {
        let buffer = self.buffer(read.tensor)?;
        if buffer.shape.len() != read.subscripts.len() {
            return Err(Error::Build(format!("`{}` has another rank", buffer.name)));
        }
        let stored = if read.checked.is_empty() {
            let offset = offset(buffer, &read.subscripts)?;
            self.load(read.tensor, &offset, active)?
        } else {
            self.checked_read(read, buffer, active)?
        };
        self.decode(buffer.dtype, stored)
    }

    /// A read whose subscripts may be out of bounds.
    fn checked_read(
        &mut self,
        read: &Read,
        buffer: &Buffer,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let place = self.checked_place(read, buffer, active)?;
        self.load_from(read.tensor, &place, active)
    }

    /// The elements at computed addresses.
    pub(super) fn load_from(
        &mut self,
        id: BufferId,
        place: &LaneAddresses<'ctx>,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        match place {
            LaneAddresses::One(address) => self.load_scalar(id, *address),
            LaneAddresses::Row(address, steps) => {
                self.load_pattern(id, *address, steps, active.mask)
            }
            LaneAddresses::Anywhere(offsets) => self.gather(id, *offsets, active.mask),
        }
    }

    /// The addresses of an access whose subscripts may be out of bounds. Invalid subscripts are
    /// replaced by 0, and the kernel finally returns the number of the access.
    pub(super) fn checked_place(
        &mut self,
        read: &Read,
        buffer: &Buffer,
        active: Active<'ctx>,
    ) -> Result<LaneAddresses<'ctx>> {
        self.charge()?;
        if let Some((base, steps)) = row_of(read, buffer, active)? {
            return self.checked_row(read, buffer, (&base, steps), active);
        }
        let mut position: Value<'ctx> = self.ir.i64(0).into();
        let mut fine: Value<'ctx> = self.ir.context.bool_type().const_all_ones().into();
        for (dimension, subscript) in (0..).zip(&read.subscripts) {
            let mut index = self.index(subscript, active)?;
            if read.checked.contains(&dimension) {
                let extent = self.extent(buffer, dimension as usize)?;
                // Negative numbers are large unsigned ones.
                let inside = self.ir.compare_ints(IntPredicate::ULT, index, extent)?;
                index = self.ir.select(inside, index, self.ir.constant_like(0, index)?)?;
                fine = self.ir.and(fine, inside)?;
            }
            let stride = self.stride(buffer, dimension as usize)?;
            let moved = self.ir.binary(InstructionOpcode::Mul, index, stride)?;
            position = self.ir.add(position, moved)?;
        }
        self.report(read, fine, active)?;
        match (position, active.mask) {
            (BasicValueEnum::VectorValue(offsets), _) => Ok(LaneAddresses::Anywhere(offsets)),
            (scalar, mask) => {
                // Idle lanes do not read; if all are idle, any valid index works.
                let position = match mask {
                    Some(mask) => {
                        let any = self.ir.any(mask.into())?;
                        self.ir.select(any.into(), scalar, self.ir.i64(0).into())?
                    }
                    None => scalar,
                };
                let base = self.pointer(read.tensor)?;
                Ok(LaneAddresses::One(self.element(
                    buffer.dtype,
                    base,
                    position.into_int_value(),
                )?))
            }
        }
    }

    /// A row, or a fixed pattern of elements, at a position from data that all lanes share.
    fn checked_row(
        &mut self,
        read: &Read,
        buffer: &Buffer,
        (base, steps): (&Index, Vec<i64>),
        active: Active<'ctx>,
    ) -> Result<LaneAddresses<'ctx>> {
        let mut position = self.index(base, active)?;
        let mut fine: Value<'ctx> = self.ir.context.bool_type().const_all_ones().into();
        for (dimension, subscript) in (0u32..).zip(&read.subscripts) {
            if read.checked.contains(&dimension) {
                let index = self.index(subscript, active)?;
                let extent = self.extent(buffer, dimension as usize)?;
                let inside = self.ir.compare_ints(IntPredicate::ULT, index, extent)?;
                let index = self.ir.select(inside, index, self.ir.constant_like(0, index)?)?;
                let stride = self.stride(buffer, dimension as usize)?;
                let moved = self.ir.binary(InstructionOpcode::Mul, index, stride)?;
                position = self.ir.add(position, moved)?;
                fine = self.ir.and(fine, inside)?;
            }
        }
        self.report(read, fine, active)?;
        let start = self.pointer(read.tensor)?;
        let address = self.element(buffer.dtype, start, position.into_int_value())?;
        Ok(LaneAddresses::Row(address, steps))
    }

    /// The extent of a dimension.
    fn extent(&mut self, buffer: &Buffer, dimension: usize) -> Result<Value<'ctx>> {
        Ok(self.scalar_index(&buffer.extent(dimension), Active::SCALAR)?.into())
    }

    /// The distance between neighbors in a dimension.
    fn stride(&mut self, buffer: &Buffer, dimension: usize) -> Result<Value<'ctx>> {
        Ok(self.scalar_index(&buffer.stride(dimension), Active::SCALAR)?.into())
    }

    /// Records a failed read, unless `fine` holds in all active lanes.
    fn report(&mut self, read: &Read, fine: Value<'ctx>, active: Active<'ctx>) -> Result<()> {
        let wrong = self.ir.not(fine)?;
        let wrong = match active.mask {
            Some(mask) => self.ir.and(wrong, mask.into())?,
            None => wrong,
        };
        let wrong = self.ir.any(wrong)?;
        let number = self.interface.check_number(read);
        let number = number.ok_or_else(|| defect("a checked read without a number"))?;
        let fail = self.ir.context.append_basic_block(self.frame.function, "out_of_bounds");
        let after = self.ir.context.append_basic_block(self.frame.function, "");
        self.ir.builder.build_conditional_branch(wrong, fail, after)?;
        self.ir.builder.position_at_end(fail);
        let code = self.ir.i32(number as i64 + 1);
        let store = self.ir.builder.build_store(self.frame.environment.error, code)?;
        // Several workers may fail at once.
        let atomic = store.set_atomic_ordering(AtomicOrdering::Monotonic);
        atomic.map_err(|_| defect("a store cannot be atomic"))?;
        self.ir.builder.build_unconditional_branch(after)?;
        self.ir.builder.position_at_end(after);
        Ok(())
    }
}

/// The pattern of the lanes of a checked read, relative to a position from data that all lanes
/// share. `None` if the positions of lanes depend on data separately, or if there are no lanes.
fn row_of(read: &Read, buffer: &Buffer, active: Active<'_>) -> Result<Option<(Index, Vec<i64>)>> {
    let Some(lanes) = active.lanes else { return Ok(None) };
    let is_lane = |axis| axis == lanes.var;
    let mut proven = read.subscripts.clone();
    for dimension in &read.checked {
        let Some(subscript) = proven.get_mut(*dimension as usize) else { return Ok(None) };
        if subscript.mentions(&is_lane) {
            return Ok(None);
        }
        *subscript = Index::constant(0);
    }
    if proven.iter().any(Index::has_value) {
        return Ok(None);
    }
    Ok(match Access::of(&offset(buffer, &proven)?, lanes) {
        Access::Pattern { base, steps } => Some((base, steps)),
        _ => None,
    })
}

/// The position of an element in the memory of a buffer.
pub(super) fn offset(buffer: &Buffer, subscripts: &[Index]) -> Result<Index> {
    let overflow = || Error::Build(format!("an offset into `{}` overflows", buffer.name));
    buffer.offset(subscripts).ok_or_else(overflow)
}
