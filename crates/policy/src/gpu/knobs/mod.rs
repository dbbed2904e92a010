//! Knobs: the scheduling decisions of a group, one file each.
//!
//! A knob implements one decision: which groups have it, its values and their topology, the field
//! of [`Tiling`] that it reads and writes, and the rules that reject values without building
//! anything. `decode/` turns tilings into steps and knows no parameters.

mod sharers;
mod stage;
mod terms;
pub(crate) mod tile;
pub(crate) mod unroll;
mod x;

use std::fmt::Debug;

use tensorwright_machine::{Goal, Gpu};
use tensorwright_space::Rejection;
use tensorwright_space::parameter::Domain;

use super::group::Group;
use super::tiling::Tiling;
use crate::stages::ranks::rank_of_parts;
use crate::stages::split::{Split, tiles};

/// The knobs of a group, in parameter order. Records store points in this order, so add new knobs
/// at the end.
pub(crate) const KNOBS: &[&dyn Knob] = &[
    &tile::TileKnob,
    &terms::TermsKnob,
    &x::XKnob,
    &stage::StageKnob,
    &unroll::UnrollKnob,
    &sharers::SharersKnob,
];

/// A parameter of a knob.
#[derive(Debug)]
pub(crate) struct KnobParameter {
    /// Its name, without that of the stage.
    pub(crate) name: String,
    /// The index of its loop or tensor in the group; zero if the knob has one parameter.
    pub(crate) place: usize,
    /// Its values. With a single value there is nothing to decide.
    pub(crate) domain: Domain,
}

/// A rule: its name, and a function that returns why it rejects a tiling.
pub(crate) type Rule = (&'static str, fn(&Group, &Tiling, &Goal<Gpu>) -> Option<String>);

/// A scheduling decision.
pub(crate) trait Knob: Debug + Send + Sync {
    /// Its parameters for a group.
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter>;

    /// Sets the decision of a tiling from a value.
    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, domain: &Domain, rank: u32);

    /// The value for the decision of a tiling; the first if there is none.
    fn write(&self, tiling: &Tiling, group: &Group, place: usize, domain: &Domain) -> u32;

    /// Why the value has no effect given the others.
    fn idle(&self, _: &Tiling, _: &Group, _place: usize) -> Option<&'static str> {
        None
    }

    /// The rules on this decision.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }
}

/// All rules, in order of application.
pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    KNOBS.iter().flat_map(|knob| knob.rules().iter().copied())
}

/// The first rule that rejects a tiling, by index.
pub(crate) fn refusal(
    group: &Group,
    tiling: &Tiling,
    goal: &Goal<Gpu>,
) -> Option<(usize, Rejection)> {
    rules().enumerate().find_map(|(place, (rule, refuses))| {
        let reason = refuses(group, tiling, goal)?;
        Some((place, Rejection { rule, reason }))
    })
}

/// One parameter per split loop.
fn of_tiles(splits: &[Split]) -> Vec<KnobParameter> {
    tiles(splits).map(|(name, place, domain)| KnobParameter { name, place, domain }).collect()
}

/// Sets the parts of a loop from a rank.
fn read_tile(to: &mut [Vec<i64>], splits: &[Split], place: usize, rank: u32) {
    if let (Some(to), Some(split)) = (to.get_mut(place), splits.get(place)) {
        *to = split.parts(rank);
    }
}

/// The rank of the parts of a loop.
fn write_tile(from: &[Vec<i64>], place: usize, domain: &Domain) -> u32 {
    from.get(place).map_or(0, |parts| rank_of_parts(domain, parts))
}
