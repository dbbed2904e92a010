//! Places buffers whose extents depend on sizes in the workspace.
//!
//! They follow the buffers of known extents, one behind the other. Buffers of equal extents and
//! disjoint lifetimes share a place: a chain of stages needs the memory of two of them.

use tensorwright_lang::program::{Index, Interval};

use super::LowerError;
use crate::nest::{LoopNest, Memory, NumberSource, Uses};
use crate::workspace::ALIGNMENT;

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
    for (number, (first, last)) in lives(nest) {
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
        let values = Interval { lo: ALIGNMENT.into(), hi: 1 << 62 };
        end = Index::axis(nest.add_number(&format!("end{number}"), source, values));
    }
    Ok(())
}

/// The buffers of the workspace whose extents depend on sizes, with the first and the last
/// statement that uses them, by the first.
fn lives(nest: &LoopNest) -> Vec<(usize, (usize, usize))> {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; nest.buffers.len()];
    for (now, node) in nest.prepare.iter().chain(&nest.body).enumerate() {
        for id in Uses::mentioned(std::slice::from_ref(node)) {
            let place = id.0 as usize;
            let buffer = &nest.buffers[place];
            if buffer.memory == Some(Memory::Workspace) && buffer.run_time.is_some() {
                let first = lives[place].map_or(now, |(first, _)| first);
                lives[place] = Some((first, now));
            }
        }
    }
    let mut found: Vec<(usize, (usize, usize))> =
        lives.into_iter().enumerate().filter_map(|(place, life)| Some((place, life?))).collect();
    found.sort_by_key(|(place, life)| (life.0, *place));
    found
}
