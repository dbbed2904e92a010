//! `order.middle`: the order of the second last spatial and outer reduction loops.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_space::parameter::{Domain, Permutation};

use super::{Knob, KnobParameter, Rule, SpaceRequest, Value, one, rank_of_order};
use crate::cpu::group::{Group, MOST_ORDERED};
use crate::cpu::tiling::Tiling;

/// The order of the second last spatial loops and the outer reduction loops.
#[derive(Debug)]
pub(super) struct MiddleOrderKnob;

impl Knob for MiddleOrderKnob {
    fn knob_parameters(&self, group: &Group, request: SpaceRequest<'_>) -> Vec<KnobParameter> {
        let split = group.spatial.iter().chain(&group.reduce).filter(|split| split.is_tiled());
        let names: Vec<String> = split.map(|split| split.axis.name.clone()).collect();
        if names.len() > MOST_ORDERED || request.options.spatial_levels < 3 {
            return Vec::new();
        }
        one("order.middle", Permutation::new(names))
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, value: Value<'_>) {
        if let Some(order) = value.order() {
            tiling.middle_order = order;
        }
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, domain: &Domain) -> u32 {
        rank_of_order(domain, &tiling.middle_order)
    }

    fn rules(&self) -> &'static [Rule] {
        &[("order.middle", terms_last)]
    }
}

/// Reduction loops summed inside a spatial tile cannot be outside it.
fn terms_last(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    if !tiling.sums_inside(group) {
        return None;
    }
    let results = group.spatial.iter().filter(|split| split.is_tiled()).count();
    let first_term = tiling.middle_order.iter().position(|item| *item >= results)?;
    let after = &tiling.middle_order[first_term..];
    // Reduction loops keep program order among each other.
    let are_last = after.iter().all(|item| *item >= results) && after.is_sorted();
    (!are_last).then(|| {
        format!(
            "the terms of {} are summed inside a tile: reduction loops come last, in program order",
            group.stage()
        )
    })
}
