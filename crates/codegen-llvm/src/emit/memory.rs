//! Emits loads and stores in memory types.
//!
//! Memory holds a `bool` as a byte and storage-only floats as their bits; [`narrow`](super::narrow)
//! converts them for expressions. Addresses are only aligned to elements, because the caller owns
//! the memory.
#![allow(unsafe_code, reason = "LLVM's address arithmetic is unsafe to build")]

use inkwell::context::Context;
use inkwell::llvm_sys::core::LLVMBuildGEP2;
use inkwell::types::{AsTypeRef as _, BasicTypeEnum, IntType};
use inkwell::values::{AsValueRef as _, BasicValue as _, IntValue, PointerValue, VectorValue};
use tensorwright_lang::dtype::DType;
use tensorwright_lang::program::Index;
use tensorwright_schedule::nest::{BufferId, Lanes};

use super::access::{Access, is_progression};
use super::idle::idle;
use super::ir::{Ir, Value, defect, vector_of};
use super::read::LaneAddresses;
use super::{Active, Emitter};
use crate::error::{Error, Result};

/// The type of an element in memory.
pub(super) fn storage<'ctx>(ir: &Ir<'_, 'ctx>, dtype: DType) -> BasicTypeEnum<'ctx> {
    match dtype {
        DType::Float => ir.context.f32_type().into(),
        DType::Double => ir.context.f64_type().into(),
        // `bool` is a byte, and storage-only floats are their bits.
        _ => integer(ir.context, dtype.bytes()).into(),
    }
}

/// The integer type of so many bytes.
pub(super) fn integer(context: &Context, bytes: usize) -> IntType<'_> {
    match bytes {
        1 => context.i8_type(),
        2 => context.i16_type(),
        4 => context.i32_type(),
        _ => context.i64_type(),
    }
}

/// The address of an element.
pub(super) fn element_address<'ctx>(
    ir: &Ir<'_, 'ctx>,
    kind: BasicTypeEnum<'ctx>,
    pointer: PointerValue<'ctx>,
    offset: IntValue<'ctx>,
) -> Result<PointerValue<'ctx>> {
    // SAFETY: the type is sized and there is one index, a 64-bit integer; the instruction is
    // not `inbounds`, so it is defined for every offset.
    Ok(unsafe { ir.builder.build_gep(kind, pointer, &[offset], "") }?)
}

/// The addresses of elements.
fn element_addresses<'ctx>(
    ir: &Ir<'_, 'ctx>,
    kind: BasicTypeEnum<'ctx>,
    pointer: PointerValue<'ctx>,
    offsets: VectorValue<'ctx>,
) -> VectorValue<'ctx> {
    let mut indices = [offsets.as_value_ref()];
    // SAFETY: as above, with a vector of indices, which makes a vector of pointers; the builder
    // has an insertion point because the offsets were built with it.
    unsafe {
        VectorValue::new(LLVMBuildGEP2(
            ir.builder.as_mut_ptr(),
            kind.as_type_ref(),
            pointer.as_value_ref(),
            indices.as_mut_ptr(),
            1,
            c"".as_ptr(),
        ))
    }
}

impl<'ctx> Emitter<'_, 'ctx> {
    /// The address at an offset in elements.
    pub(super) fn element(
        &self,
        dtype: DType,
        pointer: PointerValue<'ctx>,
        offset: IntValue<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        element_address(&self.ir, storage(&self.ir, dtype), pointer, offset)
    }

    /// The elements at an offset: a scalar if all lanes share one, otherwise a vector.
    pub(super) fn load(
        &mut self,
        id: BufferId,
        offset: &Index,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        self.charge()?;
        let Some(lanes) = active.lanes else {
            let address = self.address(id, offset, active)?;
            return self.load_scalar(id, address);
        };
        // If all lanes are in bounds, idle ones may be loaded too.
        let buffer = self.buffer(id)?;
        let is_safe = buffer.run_time.is_none()
            && self.frame.ranges.interval(offset).within(0, buffer.elements().into());
        let mask = active.mask.filter(|_| !is_safe);
        match (Access::of(offset, lanes), mask) {
            (Access::Uniform, None) => {
                let address = self.address(id, offset, active)?;
                self.load_scalar(id, address)
            }
            (Access::Uniform, Some(mask)) => self.load_shared(id, offset, mask, active),
            (Access::Pattern { base, steps }, mask) => {
                let address = self.address(id, &base, active)?;
                self.load_pattern(id, address, &steps, mask)
            }
            (Access::Irregular, mask) => {
                let offsets = self.offsets(offset, lanes, active)?;
                self.gather(id, offsets, mask)
            }
        }
    }

    pub(super) fn load_scalar(
        &mut self,
        id: BufferId,
        address: PointerValue<'ctx>,
    ) -> Result<Value<'ctx>> {
        let dtype = self.buffer(id)?.dtype;
        self.load_as(dtype, storage(&self.ir, dtype), address)
    }

    /// An element that all lanes share and that may only be read if one of them is active. If none
    /// is, the last element is read instead, which always exists: memory may begin with a gap, but
    /// never ends with one.
    fn load_shared(
        &mut self,
        id: BufferId,
        offset: &Index,
        mask: VectorValue<'ctx>,
        active: Active<'ctx>,
    ) -> Result<Value<'ctx>> {
        let address = self.address(id, offset, active)?;
        let buffer = self.buffer(id)?;
        let dtype = buffer.dtype;
        // Of a part of a larger tensor, the first element exists.
        let other = if buffer.run_time.is_some() { 0 } else { buffer.elements() - 1 };
        let start = self.pointer(id)?;
        let last = self.displaced(dtype, start, other)?;
        let any = self.ir.any(mask.into())?;
        let address = self.ir.builder.build_select(any, address, last, "")?;
        self.load_scalar(id, address.into_pointer_value())
    }

    /// A load of a type that consists of elements, with their alignment.
    fn load_as(
        &self,
        dtype: DType,
        kind: BasicTypeEnum<'ctx>,
        address: PointerValue<'ctx>,
    ) -> Result<Value<'ctx>> {
        let value = self.ir.builder.build_load(kind, address, "")?;
        if let Some(load) = value.as_instruction_value() {
            let aligned = load.set_alignment(dtype.bytes() as u32);
            aligned.map_err(|_| defect("a load cannot be aligned"))?;
        }
        Ok(value)
    }

    /// Elements at known distances.
    pub(super) fn load_pattern(
        &mut self,
        id: BufferId,
        base: PointerValue<'ctx>,
        steps: &[i64],
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<Value<'ctx>> {
        let dtype = self.buffer(id)?.dtype;
        let idle = mask.map(idle).unwrap_or_default();
        if is_progression(steps, 1) {
            return self.load_row(dtype, base, steps.len(), mask, &idle);
        }
        if is_progression(steps, -1) {
            let lowest = self.displaced(dtype, base, 1 - steps.len() as i64)?;
            let mask = mask.map(|mask| self.ir.reverse(mask)).transpose()?;
            let idle: Vec<bool> = idle.into_iter().rev().collect();
            let row = self.load_row(dtype, lowest, steps.len(), mask, &idle)?.into_vector_value();
            return Ok(self.ir.reverse(row)?.into());
        }
        if let Some(mask) = mask {
            let offsets = self.ir.constants(self.ir.context.i64_type(), steps.iter().copied());
            return self.gather_at(dtype, base, offsets, Some(mask));
        }
        let (lowest, highest) =
            steps.iter().fold((0, 0), |(lo, hi), step| (lo.min(*step), hi.max(*step)));
        if highest.saturating_sub(lowest) < 4 * steps.len() as i64 {
            return self.load_rows(dtype, base, steps, lowest, highest);
        }
        self.load_each(dtype, base, steps)
    }

    /// Contiguous elements, some of which are known to be idle.
    fn load_row(
        &self,
        dtype: DType,
        address: PointerValue<'ctx>,
        count: usize,
        mask: Option<VectorValue<'ctx>>,
        idle: &[bool],
    ) -> Result<Value<'ctx>> {
        let kind = vector_of(storage(&self.ir, dtype), count as u32);
        let Some(mask) = mask else { return self.load_as(dtype, kind.into(), address) };
        let register = (self.ir.target.cpu().vector_bytes() as usize / dtype.bytes()).max(1);
        if !idle.chunks(register).any(|lanes| lanes.iter().all(|idle| *idle)) {
            return self.load_masked(dtype, address, mask);
        }
        // Skips registers that are completely idle: see `idle.rs`.
        let mut row = kind.const_zero();
        for (number, lanes) in idle.chunks(register).enumerate() {
            if lanes.iter().all(|idle| *idle) {
                continue;
            }
            let (first, count) = ((number * register) as i64, count as i64);
            let here = first..first + lanes.len() as i64;
            let part = self.ir.shuffle(mask, mask.get_type().get_poison(), here.clone())?;
            let address = self.displaced(dtype, address, first)?;
            let part = self.load_masked(dtype, address, part)?.into_vector_value();
            let places = (0..count).map(|lane| if here.contains(&lane) { lane - first } else { 0 });
            let part = self.ir.shuffle(part, part.get_type().get_poison(), places)?;
            let joined = (0..count).map(|lane| lane + if here.contains(&lane) { count } else { 0 });
            row = self.ir.shuffle(row, part, joined)?;
        }
        Ok(row.into())
    }

    /// Contiguous elements under a mask; zeros elsewhere.
    fn load_masked(
        &self,
        dtype: DType,
        address: PointerValue<'ctx>,
        mask: VectorValue<'ctx>,
    ) -> Result<Value<'ctx>> {
        let kind = vector_of(storage(&self.ir, dtype), mask.get_type().get_size());
        let alignment = self.ir.i32(dtype.bytes() as i64).into();
        // Idle lanes are zero, not poison: they may reach a division.
        let args = [address.into(), alignment, mask.into(), kind.const_zero().into()];
        let types = [kind.into(), address.get_type().into()];
        let loaded = self.ir.intrinsic("llvm.masked.load", &types, &args)?;
        match dtype {
            DType::Float | DType::Double => Ok(loaded),
            // LLVM 19 combines the load with the following extension, and on AVX2 drops the mask if
            // a part of it is constant: an out-of-bounds load. A freeze prevents that.
            _ => self.ir.freeze(loaded),
        }
    }

    /// Elements close to each other: loads of contiguous rows, then shuffles. All elements of the
    /// rows lie between elements that are read anyway.
    fn load_rows(
        &self,
        dtype: DType,
        base: PointerValue<'ctx>,
        steps: &[i64],
        lowest: i64,
        highest: i64,
    ) -> Result<Value<'ctx>> {
        let count = steps.len() as i64;
        let span = highest - lowest + 1;
        let row = span.min(count);
        let mut result: Option<VectorValue<'ctx>> = None;
        let mut covered = 0;
        while covered < span {
            // The last row ends with the last element.
            let start = covered.min(span - row);
            let address = self.displaced(dtype, base, lowest + start)?;
            let loaded =
                self.load_row(dtype, address, row as usize, None, &[])?.into_vector_value();
            let place = |step: &i64| step - lowest - start;
            let is_here = |step: &i64| step - lowest >= covered && place(step) < row;
            result = Some(match result {
                None => {
                    let lanes = steps.iter().map(|s| if is_here(s) { place(s) } else { 0 });
                    self.ir.shuffle(loaded, loaded.get_type().get_poison(), lanes)?
                }
                // A second row implies that rows have as many elements as there are lanes.
                Some(result) => {
                    let lanes = (0..).zip(steps);
                    let lanes = lanes.map(|(n, s)| if is_here(s) { count + place(s) } else { n });
                    self.ir.shuffle(result, loaded, lanes)?
                }
            });
            covered = start + row;
        }
        result.map(Into::into).ok_or_else(|| defect("a load without lanes"))
    }

    /// Elements far from each other, loaded one by one.
    fn load_each(
        &self,
        dtype: DType,
        base: PointerValue<'ctx>,
        steps: &[i64],
    ) -> Result<Value<'ctx>> {
        let kind = storage(&self.ir, dtype);
        let mut result = vector_of(kind, steps.len() as u32).get_poison();
        for (lane, step) in (0..).zip(steps) {
            let address = self.displaced(dtype, base, *step)?;
            let value = self.load_as(dtype, kind, address)?;
            result = self.ir.builder.build_insert_element(result, value, self.ir.i32(lane), "")?;
        }
        Ok(result.into())
    }

    /// The offsets of the lanes as a vector.
    fn offsets(
        &mut self,
        offset: &Index,
        lanes: Lanes,
        active: Active<'ctx>,
    ) -> Result<VectorValue<'ctx>> {
        let offsets = self.index(offset, active)?;
        self.in_lanes(offsets, lanes)
    }

    /// Broadcasts a value to all lanes.
    fn in_lanes(&self, value: Value<'ctx>, lanes: Lanes) -> Result<VectorValue<'ctx>> {
        let count = u32::try_from(lanes.count);
        self.ir.splat(value, count.map_err(|_| Error::Build("too many lanes".into()))?)
    }

    /// Elements anywhere in a buffer.
    pub(super) fn gather(
        &mut self,
        id: BufferId,
        offsets: VectorValue<'ctx>,
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<Value<'ctx>> {
        let (dtype, base) = (self.buffer(id)?.dtype, self.pointer(id)?);
        self.gather_at(dtype, base, offsets, mask)
    }

    /// Gathers a power of two of lanes: LLVM 19 widens other numbers with an undefined index, which
    /// may share its register with the result. Such an instruction is illegal on x86.
    fn gather_at(
        &self,
        dtype: DType,
        base: PointerValue<'ctx>,
        offsets: VectorValue<'ctx>,
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<Value<'ctx>> {
        let count = offsets.get_type().get_size();
        if count.is_power_of_two() {
            return self.gather_lanes(dtype, base, offsets, mask);
        }
        let (lanes, all) = (i64::from(count), i64::from(count.next_power_of_two()));
        let widen = |vector: VectorValue<'ctx>| {
            let zero = vector.get_type().const_zero();
            self.ir.shuffle(vector, zero, (0..all).map(|lane| lane.min(lanes)))
        };
        let mask = widen(mask.map_or_else(|| self.everyone(count), Ok)?)?;
        let wide = self.gather_lanes(dtype, base, widen(offsets)?, Some(mask))?.into_vector_value();
        Ok(self.ir.shuffle(wide, wide, 0..lanes)?.into())
    }

    fn gather_lanes(
        &self,
        dtype: DType,
        base: PointerValue<'ctx>,
        offsets: VectorValue<'ctx>,
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<Value<'ctx>> {
        let kind = storage(&self.ir, dtype);
        let count = offsets.get_type().get_size();
        let addresses = element_addresses(&self.ir, kind, base, offsets);
        let mask = mask.map_or_else(|| self.everyone(count), Ok)?;
        let vector = vector_of(kind, count);
        let alignment = self.ir.i32(dtype.bytes() as i64).into();
        let args = [addresses.into(), alignment, mask.into(), vector.const_zero().into()];
        let types = [vector.into(), addresses.get_type().into()];
        self.ir.intrinsic("llvm.masked.gather", &types, &args)
    }

    /// The mask with all lanes active.
    fn everyone(&self, count: u32) -> Result<VectorValue<'ctx>> {
        self.ir.splat(self.ir.context.bool_type().const_all_ones().into(), count)
    }

    /// Stores elements at an offset.
    pub(super) fn store_to(
        &mut self,
        id: BufferId,
        offset: &Index,
        value: Value<'ctx>,
        active: Active<'ctx>,
    ) -> Result<()> {
        let access = active.lanes.map(|lanes| (lanes, Access::of(offset, lanes)));
        let place = match access {
            None | Some((_, Access::Uniform)) => {
                LaneAddresses::One(self.address(id, offset, active)?)
            }
            Some((_, Access::Pattern { base, steps })) => {
                LaneAddresses::Row(self.address(id, &base, active)?, steps)
            }
            Some((lanes, Access::Irregular)) => {
                LaneAddresses::Anywhere(self.offsets(offset, lanes, active)?)
            }
        };
        self.store_at(id, &place, value, active)
    }

    /// Stores elements at computed addresses.
    pub(super) fn store_at(
        &mut self,
        id: BufferId,
        place: &LaneAddresses<'ctx>,
        value: Value<'ctx>,
        active: Active<'ctx>,
    ) -> Result<()> {
        self.charge()?;
        self.last.retain(|last| last.is_left_by(id));
        let dtype = self.buffer(id)?.dtype;
        let Some(lanes) = active.lanes else {
            return match place {
                LaneAddresses::One(address) => self.store_as(dtype, *address, value),
                _ => Err(defect("lanes without a vector")),
            };
        };
        let value = self.in_lanes(value, lanes)?;
        match place {
            LaneAddresses::One(_) => {
                Err(Error::Build("all lanes of a store write one element".into()))
            }
            LaneAddresses::Row(address, steps) => {
                self.store_pattern(dtype, *address, steps, value, active.mask)
            }
            LaneAddresses::Anywhere(offsets) => {
                let base = self.pointer(id)?;
                self.scatter(dtype, base, *offsets, value, active.mask)
            }
        }
    }

    fn store_as(
        &self,
        dtype: DType,
        address: PointerValue<'ctx>,
        value: Value<'ctx>,
    ) -> Result<()> {
        let store = self.ir.builder.build_store(address, value)?;
        let aligned = store.set_alignment(dtype.bytes() as u32);
        aligned.map_err(|_| defect("a store cannot be aligned"))
    }

    fn store_pattern(
        &mut self,
        dtype: DType,
        base: PointerValue<'ctx>,
        steps: &[i64],
        value: VectorValue<'ctx>,
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<()> {
        if is_progression(steps, 1) {
            return self.store_row(dtype, base, value, mask);
        }
        if is_progression(steps, -1) {
            let lowest = self.displaced(dtype, base, 1 - steps.len() as i64)?;
            let mask = mask.map(|mask| self.ir.reverse(mask)).transpose()?;
            return self.store_row(dtype, lowest, self.ir.reverse(value)?, mask);
        }
        if mask.is_some() {
            let offsets = self.ir.constants(self.ir.context.i64_type(), steps.iter().copied());
            return self.scatter(dtype, base, offsets, value, mask);
        }
        for (lane, step) in (0..).zip(steps) {
            let address = self.displaced(dtype, base, *step)?;
            self.store_as(dtype, address, self.ir.lane(value.into(), lane)?)?;
        }
        Ok(())
    }

    fn store_row(
        &self,
        dtype: DType,
        address: PointerValue<'ctx>,
        value: VectorValue<'ctx>,
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<()> {
        let Some(mask) = mask else { return self.store_as(dtype, address, value.into()) };
        let alignment = self.ir.i32(dtype.bytes() as i64).into();
        let args = [value.into(), address.into(), alignment, mask.into()];
        let types = [value.get_type().into(), address.get_type().into()];
        self.ir.intrinsic_call("llvm.masked.store", &types, &args)?;
        Ok(())
    }

    fn scatter(
        &self,
        dtype: DType,
        base: PointerValue<'ctx>,
        offsets: VectorValue<'ctx>,
        value: VectorValue<'ctx>,
        mask: Option<VectorValue<'ctx>>,
    ) -> Result<()> {
        let addresses = element_addresses(&self.ir, storage(&self.ir, dtype), base, offsets);
        let count = offsets.get_type().get_size();
        let mask = mask.map_or_else(|| self.everyone(count), Ok)?;
        let alignment = self.ir.i32(dtype.bytes() as i64).into();
        let args = [value.into(), addresses.into(), alignment, mask.into()];
        let types = [value.get_type().into(), addresses.get_type().into()];
        self.ir.intrinsic_call("llvm.masked.scatter", &types, &args)?;
        Ok(())
    }
}
