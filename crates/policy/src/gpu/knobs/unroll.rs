//! `unroll`: the unroll factor of the innermost reduction loop.

use tensorwright_space::parameter::{Discrete, Domain};

use super::{Knob, KnobParameter};
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;
use crate::stages::ranks::{number, rank_of_number};

/// The candidate unroll factors.
const VALUES: [i64; 5] = [1, 2, 4, 8, 16];

/// Loops up to this length may be fully unrolled, whatever their length.
pub(crate) const MOST_WINDOW: i64 = 8;

/// The unroll factor of the innermost reduction loop.
#[derive(Debug)]
pub(super) struct UnrollKnob;

impl Knob for UnrollKnob {
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter> {
        let terms = group.reduce.last().map_or(1, |split| split.extent()).max(1);
        let values = VALUES.into_iter().filter(|value| *value <= terms);
        // Short loops, such as those of a window, are best unrolled fully.
        let all = (terms <= MOST_WINDOW && !VALUES.contains(&terms)).then_some(terms);
        let domain = Discrete::new(values.chain(all)).into();
        vec![KnobParameter { name: "unroll".to_owned(), place: 0, domain }]
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, domain: &Domain, rank: u32) {
        tiling.unroll = number(domain, rank, 1);
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, domain: &Domain) -> u32 {
        rank_of_number(domain, tiling.unroll)
    }

    fn idle(&self, tiling: &Tiling, _: &Group, _: usize) -> Option<&'static str> {
        tiling.shares_sum().then_some("the reduction is cooperative")
    }
}
