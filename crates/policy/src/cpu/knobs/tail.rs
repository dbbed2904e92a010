//! `tail` and `tail.vector`: tail strategies of spatial loops.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::primitives::Tail;
use tensorwright_space::parameter::{Categorical, Domain, Splits};

use super::{Knob, KnobContext, KnobParameter, Rule, SpaceRequest, Value, one, rank_of};
use crate::cpu::group::{Group, Vector};
use crate::cpu::tiling::Tiling;

/// The tail of loops that are not vectorized.
#[derive(Debug)]
pub(super) struct TailKnob;

/// The tail of the vectorized loop.
#[derive(Debug)]
pub(super) struct VectorTailKnob;

/// The choices. A shifted last tile recomputes results, which sums do not allow.
fn choices(group: &Group) -> &'static [Tail] {
    match group.is_reduction() {
        true => &[Tail::Peel, Tail::Guard, Tail::RoundUp],
        false => &[Tail::Peel, Tail::Guard, Tail::Shift, Tail::RoundUp],
    }
}

fn knob_parameters(name: &str, group: &Group, request: SpaceRequest<'_>) -> Vec<KnobParameter> {
    if request.options.splits != Splits::Covering {
        return Vec::new();
    }
    one(name, Categorical::new(choices(group).iter().map(|tail| tail.name())))
}

impl Knob for TailKnob {
    fn knob_parameters(&self, group: &Group, request: SpaceRequest<'_>) -> Vec<KnobParameter> {
        knob_parameters("tail", group, request)
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, _: usize, value: Value<'_>) {
        tiling.tail = value.choice(choices(group), Tail::Peel);
    }

    fn write(&self, tiling: &Tiling, group: &Group, _: usize, _: &Domain) -> u32 {
        rank_of(choices(group), &tiling.tail)
    }

    fn rules(&self) -> &'static [Rule] {
        &[("tail", tails)]
    }

    fn idle(&self, context: KnobContext<'_>) -> Option<&'static str> {
        let mut others =
            (0..context.tiling.spatial.len()).filter(|axis| !context.tiling.is_vector(*axis));
        let is_split = others.any(|axis| context.tiling.spatial[axis].len() > 1);
        (!is_split).then_some("only the vectorized loop is split")
    }
}

impl Knob for VectorTailKnob {
    fn knob_parameters(&self, group: &Group, request: SpaceRequest<'_>) -> Vec<KnobParameter> {
        if group.vectors.len() < 2 {
            return Vec::new();
        }
        knob_parameters("tail.vector", group, request)
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, _: usize, value: Value<'_>) {
        tiling.vector_tail = value.choice(choices(group), Tail::Peel);
    }

    fn write(&self, tiling: &Tiling, group: &Group, _: usize, _: &Domain) -> u32 {
        rank_of(choices(group), &tiling.vector_tail)
    }

    fn idle(&self, context: KnobContext<'_>) -> Option<&'static str> {
        (!matches!(context.tiling.vector, Vector::Spatial { .. }))
            .then_some("no spatial loop is vectorized")
    }
}

/// A shifted tile fits the extent, and no two workers write the same elements. Loops with separate
/// tails cannot be fused.
fn tails(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    let shared = usize::try_from(tiling.parallel).unwrap_or(0);
    group.spatial.iter().enumerate().find_map(|(place, split)| {
        let (tile, extent) = (tiling.cover(place), split.axis.extent);
        let name = &split.axis.name;
        if extent % tile == 0 {
            return None;
        }
        let order = tiling.outer_order.iter().position(|axis| *axis == place);
        let is_shared = order.is_some_and(|order| order < shared);
        match tiling.tail_of(place) {
            Tail::Shift if tile > extent => {
                Some(format!("a tile of {tile} cannot be shifted inwards: {name} has {extent}"))
            }
            Tail::Shift if is_shared => {
                Some(format!("two workers would write the same elements along {name}"))
            }
            Tail::Shift | Tail::Peel if is_shared && shared > 1 => {
                Some(format!("{name} has a tail of its own and cannot be fused"))
            }
            _ => None,
        }
    })
}
