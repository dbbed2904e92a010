//! `x`: the spatial loop along the threads of a warp.

use tensorwright_space::parameter::{Categorical, Domain};

use super::{Knob, KnobParameter};
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;
use crate::stages::ranks::rank_of;

/// The loop along the threads of a warp.
#[derive(Debug)]
pub(super) struct XKnob;

/// The candidate loops: the one with contiguous results first.
fn candidates(group: &Group) -> Vec<usize> {
    let others = (0..group.spatial.len()).filter(|place| *place != group.contiguous);
    let split = others.filter(|place| group.spatial[*place].is_tiled());
    [group.contiguous].into_iter().chain(split).collect()
}

impl Knob for XKnob {
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter> {
        let names = candidates(group).into_iter().map(|place| &group.spatial[place].axis.name);
        let domain = Categorical::new(names.cloned()).into();
        vec![KnobParameter { name: "x".to_owned(), place: 0, domain }]
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, _: usize, _: &Domain, rank: u32) {
        tiling.x = candidates(group).get(rank as usize).copied().unwrap_or(group.contiguous);
    }

    fn write(&self, tiling: &Tiling, group: &Group, _: usize, _: &Domain) -> u32 {
        rank_of(&candidates(group), &tiling.x)
    }
}
