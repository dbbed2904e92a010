//! Places buffers whose extents depend on sizes in the workspace.
//!
//! They follow the buffers of known extents, one behind the other. Buffers of equal extents and
//! disjoint lifetimes share a place: a chain of stages needs the memory of two of them.

use tensorwright_lang::program::{Index, Interval};

use super::LowerError;
use crate::nest::{LoopNest, MAX_BYTES, Memory, NumberSource};
use crate::workspace::{ALIGNMENT, Life, lives};

/// Buffers that use the same memory, one after the other.
struct Slot {
    bytes: i64,
    extents: Vec<Index>,
    /// The last statement that uses it.
    last: usize,
    tenants: Vec<usize>,
}

pub(super) fn run(nest: &mut LoopNest) -> Result<(), LowerError> {
    let mut slots: Vec<Slot> = Vec::new();
    for (number, Life { first, last }) in sized_lives(nest) {
        let buffer = &nest.buffers[number];
        let Some(shape) = &buffer.run_time else { continue };
        let bytes = buffer.dtype.bytes() as i64;
        let is_free = |slot: &&mut Slot| {
            (slot.bytes, &slot.extents) == (bytes, &shape.extents) && slot.last < first
        };
        match slots.iter_mut().find(is_free) {
            Some(slot) => {
                slot.last = last;
                slot.tenants.push(number);
            }
            None => {
                let (extents, tenants) = (shape.extents.clone(), vec![number]);
                slots.push(Slot { bytes, extents, last, tenants });
            }
        }
    }
    let mut end = Index::constant(0);
    for (number, slot) in slots.into_iter().enumerate() {
        for tenant in slot.tenants {
            if let Some(shape) = &mut nest.buffers[tenant].run_time {
                shape.start = Some(end.clone());
            }
        }
        let Slot { bytes, extents, .. } = slot;
        let source = NumberSource::End { start: end, bytes, extents };
        let values = Interval { lo: ALIGNMENT.into(), hi: MAX_BYTES.into() };
        end = Index::axis(nest.add_number(&format!("end{number}"), source, values));
    }
    Ok(())
}

/// The buffers of the workspace whose extents depend on sizes, by their first use.
fn sized_lives(nest: &LoopNest) -> Vec<(usize, Life)> {
    let is_ours = |place: &usize| {
        let buffer = &nest.buffers[*place];
        buffer.memory == Some(Memory::Workspace) && buffer.run_time.is_some()
    };
    let all = lives(nest).into_iter().enumerate();
    let mut found: Vec<(usize, Life)> =
        all.filter_map(|(place, life)| Some((place, life?))).collect();
    found.retain(|(place, _)| is_ours(place));
    found.sort_by_key(|(place, life)| (life.first, *place));
    found
}
