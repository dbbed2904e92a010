//! Panels of operands: copied into order where they are used, or laid out once.

use tensorwright_schedule::primitives::{
    CacheRead, LayoutText, Part, Reorder, SetLayout, Split, Tail, Vectorize,
};

use super::Decoder;
use super::loops::Loops;
use crate::cpu::group::{Group, Mover, Pack, Vector};
use crate::cpu::tiling::Tiling;
use tensorwright_space::Rejection;

impl Decoder<'_> {
    /// Packs the operands of a group where the point says so.
    pub(super) fn pack(
        &mut self,
        group: &Group,
        tiling: &Tiling,
        loops: &Loops,
    ) -> Result<(), Rejection> {
        let stage = reading_stage(group, tiling);
        for pack in &group.packs {
            // A tensor that is made where it is read needs no other copy.
            let made_here = self.placement_of(&pack.tensor).map(|placement| self.place(placement));
            if made_here.is_some_and(|place| place != "root") {
                continue;
            }
            let choice = self.values.choice(Some(pack.slot)).unwrap_or("none").to_owned();
            let places = loops.places();
            let at = match choice.as_str() {
                "laid" => {
                    self.apply(&pack.tensor, SetLayout { layout: laid(pack, tiling) })?;
                    continue;
                }
                "outer" => places.first().copied(),
                "middle" => loops.outer.last(),
                "inner" => places.last().copied(),
                _ => None,
            };
            let Some(at) = at.cloned() else { continue };
            let layout = turned(pack, tiling);
            let step = CacheRead { tensor: pack.tensor.clone(), at, layout };
            self.apply(&stage, step)?;
            self.vectors_in_copy(pack, tiling);
        }
        Ok(())
    }

    /// The copy of a panel goes along its rows. Where these are not the rows of the tensor, elements
    /// are gathered (which is faster than scattering them), with the tensor's rows next to the lanes.
    fn vectors_in_copy(&mut self, pack: &Pack, tiling: &Tiling) {
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

/// The stage whose reads are packed, as it is called after tiling.
fn reading_stage(group: &Group, tiling: &Tiling) -> String {
    let stage = group.stage();
    match tiling.vector {
        Vector::Reduce { .. } => format!("{stage}.rf"),
        _ if group.epilogue_of.is_some() && tiling.fuses => stage.to_owned(),
        _ if group.reduce.is_empty() => stage.to_owned(),
        _ if tiling.transposes => format!("{stage}.tile.tile"),
        _ => format!("{stage}.tile"),
    }
}

/// The dimension of an operand that the register tile runs along: with the vectors if it moves with
/// them, with the rows otherwise.
fn tile_dimension(pack: &Pack, tiling: &Tiling) -> Option<(usize, i64)> {
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

/// The layout of a panel: what the register tile runs along comes last.
fn turned(pack: &Pack, tiling: &Tiling) -> Option<LayoutText> {
    let (dimension, _) = tile_dimension(pack, tiling)?;
    if dimension + 1 == pack.rank {
        return None;
    }
    let others = (0..pack.rank).filter(|other| *other != dimension);
    let parts = others.chain([dimension]).map(|d| Part::Whole(d as u32)).collect();
    Some(LayoutText { parts })
}

/// The layout of a constant: blocks of what a register tile needs, next to each other, and what loops
/// over results choose outside of them.
fn laid(pack: &Pack, tiling: &Tiling) -> LayoutText {
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
