//! Operand packing: at a loop, or ahead of time.

use tensorwright_schedule::primitives::{
    CacheRead, LayoutText, Part, Reorder, SetLayout, Split, Tail, Vectorize,
};

use super::Decoder;
use super::loops::Loops;
use crate::cpu::group::{Group, Packable, Vector};
use crate::cpu::knobs::place::Place;
use crate::cpu::tiling::{PackAt, StoreBy, Tiling};
use crate::stages::operand::Mover;
use tensorwright_space::Rejection;

impl Decoder<'_> {
    /// Packs the operands of a group as the point says.
    pub(super) fn pack(
        &mut self,
        group: &Group,
        tiling: &Tiling,
        loops: &Loops,
    ) -> Result<(), Rejection> {
        let stage = reading_stage(group, tiling);
        for (pack, at) in group.packs.iter().zip(&tiling.packs) {
            // A tensor computed at its reader needs no other copy.
            if self.sketch.place_of(&pack.tensor, self.values) != Place::Root {
                continue;
            }
            let places = loops.places();
            let at = match at {
                PackAt::Nowhere => continue,
                PackAt::Laid => {
                    self.apply(&pack.tensor, SetLayout { layout: laid(pack, tiling) })?;
                    continue;
                }
                PackAt::Outer => places.first().copied(),
                PackAt::Middle => loops.outer.last(),
                PackAt::Inner => places.last().copied(),
            };
            let Some(at) = at.cloned() else {
                let reason = format!("no loop to pack {} at", pack.tensor);
                return Err(Rejection { rule: "pack", reason });
            };
            let layout = turned(pack, tiling);
            let step = CacheRead { layout, ..CacheRead::new(&pack.tensor, at) };
            self.apply(&stage, step)?;
            self.vectors_in_copy(pack, tiling);
        }
        Ok(())
    }

    /// Vectorizes the copy of a panel along its rows. If these are not the rows of the tensor,
    /// elements are gathered, which is faster than scattering them, with the tensor's rows next to
    /// the lanes.
    fn vectors_in_copy(&mut self, pack: &Packable, tiling: &Tiling) {
        let copy = format!("{}.pack", pack.tensor);
        let lanes = self.goal.target.lanes(pack.element_bytes);
        if lanes == 1 {
            return;
        }
        let last = pack.rank - 1;
        let row = match turned(pack, tiling) {
            Some(_) => tile_dimension(pack, tiling).map_or(last, |(dimension, _)| dimension),
            None => last,
        };
        let (outer, inner) = (format!("d{row}.0"), format!("d{row}.1"));
        self.draft.steps(|draft| {
            let split = Split::new(format!("d{row}"), &[lanes]).tail(Tail::Guard);
            if !draft.step(&copy, split) {
                return false;
            }
            if row != last {
                let others = (0..last).filter(|d| *d != row).map(|d| format!("d{d}"));
                let order = others.chain([outer, format!("d{last}"), inner.clone()]).collect();
                draft.step(&copy, Reorder { order });
            }
            draft.step(&copy, Vectorize { target: inner })
        });
    }
}

/// The name after tiling of the stage whose reads are packed.
fn reading_stage(group: &Group, tiling: &Tiling) -> String {
    let stage = group.stage();
    match tiling.vector {
        Vector::Reduce { .. } => format!("{stage}.rf"),
        _ if tiling.is_fused(group) => stage.to_owned(),
        _ if group.reduce.is_empty() => stage.to_owned(),
        _ if tiling.store == StoreBy::Transposed => format!("{stage}.tile.tile"),
        _ => format!("{stage}.tile"),
    }
}

/// The dimension of an operand that the register tile runs along: along the vectors if it moves
/// with them, otherwise along the rows.
fn tile_dimension(pack: &Packable, tiling: &Tiling) -> Option<(usize, i64)> {
    if let Vector::Spatial { axis, lanes } = tiling.vector
        && let Some(dimension) = pack.dimension_of.get(axis).copied().flatten()
    {
        return Some((dimension, tiling.register(axis).max(lanes)));
    }
    let rows = |axis: &usize| tiling.register(*axis) > 1;
    let axis =
        (0..pack.dimension_of.len()).filter(rows).find(|a| pack.dimension_of[*a].is_some())?;
    Some((pack.dimension_of[axis]?, tiling.register(axis)))
}

/// The layout of a panel: the dimension along the register tile comes last.
fn turned(pack: &Packable, tiling: &Tiling) -> Option<LayoutText> {
    let (dimension, _) = tile_dimension(pack, tiling)?;
    if dimension + 1 == pack.rank {
        return None;
    }
    let others = (0..pack.rank).filter(|other| *other != dimension);
    let parts = others.chain([dimension]).map(|d| Part::Whole(d as u32)).collect();
    Some(LayoutText { parts })
}

/// The layout of a constant: contiguous blocks per register tile, indexed by outer spatial loops.
fn laid(pack: &Packable, tiling: &Tiling) -> LayoutText {
    let Some((dimension, block)) = tile_dimension(pack, tiling).filter(|(_, block)| *block > 1)
    else {
        return LayoutText { parts: (0..pack.rank).map(|d| Part::Whole(d as u32)).collect() };
    };
    let others = (0..pack.rank).filter(|other| *other != dimension);
    let of_results = |other: &usize| {
        pack.moved_by[*other].iter().any(|mover| matches!(mover, Mover::Spatial(..)))
    };
    let (chosen, summed): (Vec<usize>, Vec<usize>) = others.partition(of_results);
    let whole = |dimension: usize| Part::Whole(dimension as u32);
    let mut parts: Vec<Part> = chosen.into_iter().map(whole).collect();
    parts.push(Part::Quotient(dimension as u32, block));
    parts.extend(summed.into_iter().map(whole));
    parts.push(Part::Remainder(dimension as u32, block));
    LayoutText { parts }
}
