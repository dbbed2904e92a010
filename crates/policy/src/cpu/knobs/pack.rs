//! `pack.TENSOR`: where an operand is packed into panels in reading order.

use std::collections::BTreeMap;

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{LoopNest, Owner};
use tensorwright_space::parameter::{Categorical, Domain};

use super::{Knob, KnobContext, KnobParameter, Rule, SpaceRequest, Value, rank_of};
use crate::cpu::group::{Group, Packable, Vector};
use crate::cpu::rules::PACK_ROW_BYTES;
use crate::cpu::tiling::{PackAt, Tiling};
use crate::stages::operand::{Mover, movers};

/// Where an operand is packed.
#[derive(Debug)]
pub(super) struct PackKnob;

/// The choices for constants, which are best laid out once.
const CONSTANT: &[PackAt] =
    &[PackAt::Laid, PackAt::Nowhere, PackAt::Outer, PackAt::Middle, PackAt::Inner];

impl PackAt {
    fn name(self) -> &'static str {
        match self {
            Self::Nowhere => "none",
            Self::Laid => "laid",
            Self::Outer => "outer",
            Self::Middle => "middle",
            Self::Inner => "inner",
        }
    }
}

impl Packable {
    /// The choices.
    fn choices(&self) -> &'static [PackAt] {
        if self.is_constant { CONSTANT } else { &CONSTANT[1..] }
    }

    /// The bytes of a row.
    pub(crate) fn row_bytes(&self) -> i64 {
        self.shape.last().copied().unwrap_or(1).saturating_mul(self.element_bytes)
    }

    /// The best packing for lanes along a spatial loop: constants are laid out, widely strided rows
    /// are packed once, the rest is read in place.
    pub(crate) fn by_rows(&self, vector: usize) -> PackAt {
        let moves = self.dimension_of[vector].is_some();
        match () {
            () if moves && self.is_constant => PackAt::Laid,
            () if moves && self.row_bytes() >= PACK_ROW_BYTES => PackAt::Outer,
            () => PackAt::Nowhere,
        }
    }
}

/// The tensors worth packing: those that some spatial loop reuses.
pub(crate) fn candidates(
    nest: &LoopNest,
    accesses: &Accesses,
    spatial: &[Axis],
    reduce: &[Axis],
) -> Vec<Packable> {
    if reduce.is_empty() {
        return Vec::new();
    }
    let mut by_tensor: BTreeMap<_, Vec<&Access>> = BTreeMap::new();
    for read in &accesses.reads {
        by_tensor.entry(read.buffer).or_default().push(read);
    }
    let mut found = Vec::new();
    for (id, reads) in by_tensor {
        let buffer = nest.buffer(id);
        let [read] = reads.as_slice() else { continue };
        let reused = spatial.iter().any(|a| a.extent > 1 && read.stride(a) == Some(0));
        if buffer.shape.len() < 2 || !reused {
            continue;
        }
        found.push(Packable {
            tensor: buffer.name.clone(),
            rank: buffer.shape.len(),
            shape: buffer.shape.clone(),
            element_bytes: buffer.dtype.bytes() as i64,
            is_constant: nest.constants.contains(&id) || buffer.owner == Owner::Prepared,
            dimension_of: spatial.iter().map(|axis| read.dimension_of(axis)).collect(),
            moved_by: read.subscripts.iter().map(|s| movers(s, spatial, reduce)).collect(),
        });
    }
    found
}

impl Knob for PackKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        let parameter = |(place, pack): (usize, &Packable)| {
            let names = pack.choices().iter().map(|choice| choice.name());
            let domain = Categorical::new(names).into();
            KnobParameter { name: format!("pack.{}", pack.tensor), place, domain }
        };
        group.packs.iter().enumerate().map(parameter).collect()
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, value: Value<'_>) {
        tiling.packs[place] = value.choice(group.packs[place].choices(), PackAt::Nowhere);
    }

    fn write(&self, tiling: &Tiling, group: &Group, place: usize, _: &Domain) -> u32 {
        rank_of(group.packs[place].choices(), &tiling.packs[place])
    }

    fn start(&self, tiling: &mut Tiling, group: &Group, _: &Goal<Cpu>) {
        for (to, pack) in tiling.packs.iter_mut().zip(&group.packs) {
            *to = match tiling.vector {
                Vector::Spatial { axis, .. } => pack.by_rows(axis),
                _ => PackAt::Nowhere,
            };
        }
    }

    fn rules(&self) -> &'static [Rule] {
        &[("pack", fits)]
    }

    fn idle(&self, context: KnobContext<'_>) -> Option<&'static str> {
        (context.is_inside)(&context.group.packs[context.place].tensor)
            .then_some("the tensor is computed at its reader and needs no packing")
    }
}

/// A packed panel is at most twice as large as the L2 cache.
fn fits(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>) -> Option<String> {
    let limit = 2 * goal.target.caches().l2;
    group.packs.iter().zip(&tiling.packs).find_map(|(pack, place)| {
        let bytes = match place {
            PackAt::Middle => panel(pack, tiling, group, true),
            PackAt::Inner => panel(pack, tiling, group, false),
            PackAt::Nowhere | PackAt::Laid | PackAt::Outer => return None,
        };
        (bytes > limit).then(|| {
            format!("the packed panel of {} has {bytes} bytes, limit {limit}", pack.tensor)
        })
    })
}

/// An upper bound on the bytes of a packed panel, for fixed inner parts of spatial loops.
fn panel(pack: &Packable, tiling: &Tiling, group: &Group, whole_tile: bool) -> i64 {
    let mut bytes = pack.element_bytes;
    for (dimension, movers) in pack.moved_by.iter().enumerate() {
        let reach = movers.iter().fold(1i64, |reach, mover| {
            let (extent, distance) = match *mover {
                Mover::Spatial(axis, distance) if whole_tile => (tiling.tile(axis), distance),
                Mover::Spatial(axis, distance) => (tiling.register(axis), distance),
                Mover::Reduce(axis, distance) => (group.reduce[axis].axis.extent, distance),
            };
            reach.saturating_add((extent - 1).saturating_mul(distance.abs()))
        });
        bytes = bytes.saturating_mul(reach.min(pack.shape[dimension]));
    }
    bytes
}
