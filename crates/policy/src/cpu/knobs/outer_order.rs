//! `order.outer`: the order of the outermost spatial loops.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_space::parameter::{Domain, Permutation};

use super::{Knob, KnobParameter, SpaceRequest, Value, one, rank_of_order};
use crate::cpu::group::{Group, MOST_ORDERED, Vector};
use crate::cpu::tiling::{PackAt, Tiling};

/// The order of the outermost spatial loops.
#[derive(Debug)]
pub(super) struct OuterOrderKnob;

impl Knob for OuterOrderKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        if group.spatial.len() > MOST_ORDERED {
            return Vec::new();
        }
        let names = group.spatial.iter().map(|split| format!("{}.0", split.axis.name));
        one("order.outer", Permutation::new(names))
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, value: Value<'_>) {
        if let Some(order) = value.order() {
            tiling.outer_order = order;
        }
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, domain: &Domain) -> u32 {
        rank_of_order(domain, &tiling.outer_order)
    }

    /// A panel is packed once if the loop that it depends on is outermost.
    fn start(&self, tiling: &mut Tiling, _: &Group, _: &Goal<Cpu>) {
        if let Vector::Spatial { axis, .. } = tiling.vector
            && tiling.packs.contains(&PackAt::Outer)
        {
            outermost(tiling, axis);
        }
    }
}

/// Makes a spatial loop the outermost; the others keep their order.
pub(crate) fn outermost(tiling: &mut Tiling, axis: usize) {
    let others = (0..tiling.spatial.len()).filter(|other| *other != axis);
    tiling.outer_order = std::iter::once(axis).chain(others).collect();
}
