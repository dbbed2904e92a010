//! `stage.TENSOR`: whether a block stages a tensor in shared memory.

use tensorwright_machine::{Goal, Gpu};
use tensorwright_space::parameter::{Categorical, Domain};

use super::{Knob, KnobParameter, Rule};
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;

/// Whether operands are staged in shared memory.
#[derive(Debug)]
pub(super) struct StageKnob;

impl Knob for StageKnob {
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter> {
        let parameter = |(place, tensor): (usize, &String)| KnobParameter {
            name: format!("stage.{tensor}"),
            place,
            domain: Categorical::new(["no", "shared"]).into(),
        };
        group.staged.iter().enumerate().map(parameter).collect()
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, place: usize, _: &Domain, rank: u32) {
        if let Some(staged) = tiling.staged.get_mut(place) {
            *staged = rank == 1;
        }
    }

    fn write(&self, tiling: &Tiling, _: &Group, place: usize, _: &Domain) -> u32 {
        u32::from(tiling.staged.get(place) == Some(&true))
    }

    fn idle(&self, tiling: &Tiling, _: &Group, _: usize) -> Option<&'static str> {
        tiling.shares_sum().then_some("the reduction is cooperative")
    }

    fn rules(&self) -> &'static [Rule] {
        &[("shared", shared)]
    }
}

/// Shared data fits the shared memory of a block.
fn shared(group: &Group, tiling: &Tiling, goal: &Goal<Gpu>) -> Option<String> {
    let (bytes, most) = (tiling.shared_bytes(group), goal.target.declared_shared());
    (bytes > most as f64)
        .then(|| format!("a block needs {bytes:.0} bytes of shared memory, limit {most}"))
}
