//! `parallel`: the number of outermost spatial loops that are parallel.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_space::parameter::{Discrete, Domain};

use super::{Knob, KnobParameter, Rule, SpaceRequest, Value, check, one, rank_of_number};
use crate::cpu::group::Group;
use crate::cpu::tiling::Tiling;

/// The maximum number of fused parallel loops.
const MOST: usize = 3;

/// The number of parallel outermost loops.
#[derive(Debug)]
pub(super) struct ParallelKnob;

impl Knob for ParallelKnob {
    fn knob_parameters(&self, group: &Group, request: SpaceRequest<'_>) -> Vec<KnobParameter> {
        match request.goal.workers > 1 {
            true => one("parallel", Discrete::new(0..=most(group))),
            false => Vec::new(),
        }
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, value: Value<'_>) {
        tiling.parallel = value.number(0);
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, domain: &Domain) -> u32 {
        rank_of_number(domain, tiling.parallel)
    }

    fn start(&self, tiling: &mut Tiling, group: &Group, goal: &Goal<Cpu>) {
        share_outermost(tiling, group, goal);
    }

    fn rules(&self) -> &'static [Rule] {
        &[("parallel", enough)]
    }
}

fn most(group: &Group) -> i64 {
    group.spatial.len().min(MOST) as i64
}

/// Parallelizes as many of the outermost loops as needed to occupy all workers.
pub(crate) fn share_outermost(tiling: &mut Tiling, group: &Group, goal: &Goal<Cpu>) {
    let most = if goal.workers > 1 { most(group) } else { 0 };
    for loops in 1..=most {
        tiling.parallel = loops;
        if check(group, tiling, goal, usize::MAX).is_ok() {
            return;
        }
    }
    tiling.parallel = 0;
}

/// Every worker has something to do.
fn enough(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>) -> Option<String> {
    let loops = usize::try_from(tiling.parallel).unwrap_or(0).min(group.spatial.len());
    if loops == 0 {
        return None;
    }
    let order = &tiling.outer_order[..loops.min(tiling.outer_order.len())];
    let iterations: i64 = order.iter().map(|axis| tiling.spatial[*axis][0]).product();
    (iterations < goal.workers)
        .then(|| format!("{iterations} iterations are too few for {} workers", goal.workers))
}
