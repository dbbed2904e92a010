//! `order.reduce`: the order of the innermost reduction loops.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_space::parameter::{Domain, Permutation};

use super::{Knob, KnobParameter, Rule, SpaceRequest, Value, one, rank_of_order};
use crate::cpu::group::{Group, MOST_ORDERED, Vector};
use crate::cpu::tiling::Tiling;

/// The order of the innermost reduction loops.
#[derive(Debug)]
pub(super) struct ReduceOrderKnob;

impl Knob for ReduceOrderKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        if group.reduce.len() > MOST_ORDERED {
            return Vec::new();
        }
        let names = group.reduce.iter().map(|split| split.axis.name.clone());
        one("order.reduce", Permutation::new(names))
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, value: Value<'_>) {
        if let Some(order) = value.order() {
            tiling.reduce_order = order;
        }
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, domain: &Domain) -> u32 {
        rank_of_order(domain, &tiling.reduce_order)
    }

    /// A vectorized reduction loop comes last.
    fn start(&self, tiling: &mut Tiling, group: &Group, _: &Goal<Cpu>) {
        if let Vector::Reduce { axis, .. } = tiling.vector {
            let others = (0..group.reduce.len()).filter(|other| *other != axis);
            tiling.reduce_order = others.chain([axis]).collect();
        }
    }

    fn rules(&self) -> &'static [Rule] {
        &[("order.reduce", lanes_last)]
    }
}

/// Vectorized reduction lanes are innermost, and so is their loop.
fn lanes_last(group: &Group, tiling: &Tiling, _: &Goal<Cpu>) -> Option<String> {
    let Vector::Reduce { axis, .. } = tiling.vector else { return None };
    let is_last = tiling.reduce_order.last() == Some(&axis);
    // The order of many loops is not a parameter.
    (!is_last && group.reduce.len() <= MOST_ORDERED)
        .then(|| format!("{} is vectorized: its loop comes last", group.reduce[axis].axis.name))
}
