//! `sharers`: the number of threads per cooperative reduction.

use tensorwright_machine::{Goal, Gpu};
use tensorwright_space::parameter::{Discrete, Domain};

use super::{Knob, KnobParameter, Rule};
use crate::gpu::group::Group;
use crate::gpu::tiling::Tiling;
use crate::stages::ranks::{number, rank_of_number};

/// The candidate thread counts; one disables cooperative reduction.
const VALUES: [i64; 6] = [1, 16, 32, 64, 128, 256];

/// The number of threads per cooperative reduction.
#[derive(Debug)]
pub(super) struct SharersKnob;

impl Knob for SharersKnob {
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter> {
        let terms = group.shared_sum.and_then(|place| group.reduce.get(place));
        // A reduction fused into its epilogue uses the threads of that stage.
        let most = match &group.epilogue_of {
            Some(_) => 1,
            None => terms.map_or(1, |split| split.extent()),
        };
        let domain = Discrete::new(VALUES.into_iter().filter(|value| *value <= most)).into();
        vec![KnobParameter { name: "sharers".to_owned(), place: 0, domain }]
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, domain: &Domain, rank: u32) {
        tiling.sharers = number(domain, rank, 1);
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, domain: &Domain) -> u32 {
        rank_of_number(domain, tiling.sharers)
    }

    fn rules(&self) -> &'static [Rule] {
        &[("sharers", alone)]
    }
}

/// Cooperating threads compute one sum at a time.
fn alone(_: &Group, tiling: &Tiling, _: &Goal<Gpu>) -> Option<String> {
    let results = tiling.accumulators();
    (tiling.shares_sum() && results > 1)
        .then(|| format!("a cooperative reduction computes one sum at a time, not {results}"))
}
