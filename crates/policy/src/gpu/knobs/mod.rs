//! Knobs: the kinds of decisions about a group of stages, one file each.
//!
//! A knob owns everything about its decision: which groups have it, the values and how they are connected, the field of
//! [`Tiling`] that it reads and writes, and the rules that refuse values without building anything. What steps a tiling
//! means is in `decode/`, which knows of no parameter.

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

/// The knobs of a group, in the order of their parameters. Records keep points by this order, so a new knob
/// goes to the end.
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
    /// The loop or the tensor that it is about, by place among the group's; zero if the knob has one parameter.
    pub(crate) place: usize,
    /// Its values. If it is one, there is nothing to decide.
    pub(crate) domain: Domain,
}

/// A rule: its name, and why it refuses a tiling.
pub(crate) type Rule = (&'static str, fn(&Group, &Tiling, &Goal<Gpu>) -> Option<String>);

/// A kind of decision.
pub(crate) trait Knob: Debug + Send + Sync {
    /// Its parameters for a group.
    fn knob_parameters(&self, group: &Group) -> Vec<KnobParameter>;

    /// Writes what a value means into a tiling.
    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, domain: &Domain, rank: u32);

    /// The value that means what a tiling says; the first if none does.
    fn write(&self, tiling: &Tiling, group: &Group, place: usize, domain: &Domain) -> u32;

    /// Why its value makes no difference beside the others.
    fn idle(&self, _: &Tiling, _: &Group, _place: usize) -> Option<&'static str> {
        None
    }

    /// Its rules.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }
}

/// All rules, in the order in which they are applied.
pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    KNOBS.iter().flat_map(|knob| knob.rules().iter().copied())
}

/// The first rule that refuses a tiling, by place.
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

/// A parameter per loop that is split.
fn of_tiles(splits: &[Split]) -> Vec<KnobParameter> {
    tiles(splits).map(|(name, place, domain)| KnobParameter { name, place, domain }).collect()
}

/// The parts that a rank stands for.
fn read_tile(to: &mut [Vec<i64>], splits: &[Split], place: usize, rank: u32) {
    if let (Some(to), Some(split)) = (to.get_mut(place), splits.get(place)) {
        *to = split.parts(rank);
    }
}

/// The rank of parts.
fn write_tile(from: &[Vec<i64>], place: usize, domain: &Domain) -> u32 {
    from.get(place).map_or(0, |parts| rank_of_parts(domain, parts))
}
