//! `tile.LOOP` of a loop over terms: steps, between which operands are staged, and the terms of a step.

use tensorwright_schedule::access::Axis;
use tensorwright_space::parameter::{Domain, Factorization};

use super::{Knob, Offer, read_tile, tiles, write_tile};
use crate::Options;
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;
use crate::stages::split::{FEWEST, Split};

/// How loops over terms are split.
#[derive(Debug)]
pub(super) struct TermsKnob;

/// The loops over terms, with the ways to split each. Windows are walked through whole.
pub(crate) fn terms(axes: Vec<Axis>, options: &Options) -> Vec<Split> {
    let split = |axis: Axis| {
        let extent = axis.extent.max(1) as u64;
        let tile = (axis.extent >= 4 * FEWEST)
            .then(|| Factorization::new(extent, options.reduce_levels, options.splits));
        Split::new(axis, tile)
    };
    axes.into_iter().map(split).collect()
}

impl Knob for TermsKnob {
    fn offers(&self, group: &Group) -> Vec<Offer> {
        tiles(&group.reduce)
    }

    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, _: &Domain, rank: u32) {
        read_tile(&mut tiling.reduce, &group.reduce, place, rank);
    }

    fn write(&self, tiling: &Tiling, _: &Group, place: usize, domain: &Domain) -> u32 {
        write_tile(&tiling.reduce, place, domain)
    }

    fn idle(&self, tiling: &Tiling, _: &Group, _: usize) -> Option<&'static str> {
        if tiling.shares_sum() {
            return Some("threads share the sum of a result");
        }
        let nothing = !tiling.staged.contains(&true);
        nothing.then_some("nothing is staged between steps")
    }
}
