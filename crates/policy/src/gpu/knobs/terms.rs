//! `tile.LOOP` of a reduction loop: steps with staged operands, and their terms.

use tensorwright_space::parameter::Domain;

use super::{Knob, KnobParameter, of_tiles, read_tile, write_tile};
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;

/// How reduction loops are split.
#[derive(Debug)]
pub(super) struct TermsKnob;

impl Knob for TermsKnob {
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter> {
        of_tiles(&group.reduce)
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, _: &Domain, rank: u32) {
        read_tile(&mut tiling.reduce, &group.reduce, place, rank);
    }

    fn write(&self, tiling: &Tiling, _: &Group, place: usize, domain: &Domain) -> u32 {
        write_tile(&tiling.reduce, place, domain)
    }

    fn idle(&self, tiling: &Tiling, _: &Group, _: usize) -> Option<&'static str> {
        if tiling.shares_sum() {
            return Some("the reduction is cooperative");
        }
        let nothing = !tiling.staged.contains(&true);
        nothing.then_some("no operand is staged")
    }
}
