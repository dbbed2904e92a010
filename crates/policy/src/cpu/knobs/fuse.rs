//! `fuse`: the compute location of a reduction with an epilogue.

use tensorwright_space::parameter::{Categorical, Domain};

use super::{Knob, KnobContext, KnobParameter, SpaceRequest, Value, one, rank_of};
use crate::cpu::group::Group;
use crate::cpu::tiling::{FuseAt, Tiling};

/// The compute location of a reduction with an epilogue.
#[derive(Debug)]
pub(super) struct FuseKnob;

const CHOICES: &[FuseAt] = &[FuseAt::Tile, FuseAt::Apart];

impl Knob for FuseKnob {
    fn knob_parameters(&self, group: &Group, _: SpaceRequest<'_>) -> Vec<KnobParameter> {
        let name = |choice: &FuseAt| match choice {
            FuseAt::Tile => "tile",
            FuseAt::Apart => "apart",
        };
        match group.can_fuse() {
            true => one("fuse", Categorical::new(CHOICES.iter().map(name))),
            false => Vec::new(),
        }
    }

    fn read(&self, tiling: &mut Tiling, _: &Group, _: usize, value: Value<'_>) {
        tiling.fuse = value.choice(CHOICES, FuseAt::Tile);
    }

    fn write(&self, tiling: &Tiling, _: &Group, _: usize, _: &Domain) -> u32 {
        rank_of(CHOICES, &tiling.fuse)
    }

    fn idle(&self, context: KnobContext<'_>) -> Option<&'static str> {
        context
            .tiling
            .sums_in_lanes()
            .then_some("vectorized partial sums are combined before they are read")
    }
}
