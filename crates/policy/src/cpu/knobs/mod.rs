//! Knobs: the scheduling decisions of a group, one file each.
//!
//! A knob implements one decision: which groups have it, its values and their topology (the
//! [`Domain`] of its parameters), their meaning (the field of [`Tiling`] that it reads and writes),
//! its starting value, and the rules that reject values without building anything. `decode/` turns
//! tilings into loops and knows no parameters.

pub(crate) mod fuse;
pub(crate) mod middle_order;
pub(crate) mod outer_order;
pub(crate) mod pack;
pub(crate) mod parallel;
pub(crate) mod place;
pub(crate) mod reduce_order;
pub(crate) mod store;
pub(crate) mod tail;
pub(crate) mod tile;
pub(crate) mod unroll;
pub(crate) mod vector;

use std::fmt::Debug;

use tensorwright_machine::{Cpu, Goal};
use tensorwright_space::Rejection;
use tensorwright_space::parameter::Domain;

use crate::SpaceOptions;
use crate::cpu::group::Group;
use crate::cpu::tiling::Tiling;
use crate::stages::ranks::{number, rank_of, rank_of_number};

/// The knobs of a group, in parameter order. Records store points in this order, so add new knobs
/// at the end.
pub(crate) const KNOBS: &[&dyn Knob] = &[
    &pack::PackKnob,
    &tile::ResultsKnob,
    &tile::TermsKnob,
    &outer_order::OuterOrderKnob,
    &middle_order::MiddleOrderKnob,
    &reduce_order::ReduceOrderKnob,
    &vector::VectorKnob,
    &unroll::UnrollKnob,
    &tail::TailKnob,
    &tail::VectorTailKnob,
    &store::StoreKnob,
    &fuse::FuseKnob,
    &parallel::ParallelKnob,
];

/// The goal and options of a space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpaceRequest<'a> {
    pub(crate) goal: &'a Goal<Cpu>,
    pub(crate) options: &'a SpaceOptions,
}

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

/// A value of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) domain: &'a Domain,
    pub(crate) rank: u32,
    /// Whether the parameter is free.
    pub(crate) is_free: bool,
}

/// A parameter in the context of all other decisions.
#[derive(Clone, Copy)]
pub(crate) struct KnobContext<'a> {
    pub(crate) tiling: &'a Tiling,
    pub(crate) group: &'a Group,
    /// The index of the parameter's loop or tensor in the group.
    pub(crate) place: usize,
    /// Whether a stage is computed inside its reader.
    pub(crate) is_inside: &'a dyn Fn(&str) -> bool,
}

/// A rule that rejects tilings without building anything: its name, and a function that returns the
/// reason.
pub(crate) type Rule = (&'static str, fn(&Group, &Tiling, &Goal<Cpu>) -> Option<String>);

/// A kind of decision about a group of stages.
pub(crate) trait Knob: Debug + Sync {
    /// The parameters of a group.
    fn knob_parameters(&self, group: &Group, request: SpaceRequest<'_>) -> Vec<KnobParameter>;

    /// Sets the decision from the value of a parameter.
    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, value: Value<'_>);

    /// The rank of the decision.
    fn write(&self, tiling: &Tiling, group: &Group, place: usize, domain: &Domain) -> u32;

    /// Sets the starting value of a search. Knobs before this one in [`KNOBS`] are set; those after
    /// it have the values of [`Tiling::plain`].
    fn start(&self, _tiling: &mut Tiling, _group: &Group, _goal: &Goal<Cpu>) {}

    /// The rules about it.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    /// Why the parameter has no effect in this context, if so. All other values of a legal point
    /// are visible in its schedule.
    fn idle(&self, _context: KnobContext<'_>) -> Option<&'static str> {
        None
    }
}

/// All rules, in order of application.
pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    KNOBS.iter().flat_map(|knob| knob.rules()).copied()
}

/// Applies the first rules.
pub(crate) fn check(
    group: &Group,
    tiling: &Tiling,
    goal: &Goal<Cpu>,
    most: usize,
) -> Result<(), (usize, Rejection)> {
    for (place, (rule, refuses)) in rules().take(most).enumerate() {
        if let Some(reason) = refuses(group, tiling, goal) {
            return Err((place, Rejection { rule, reason }));
        }
    }
    Ok(())
}

/// The single parameter of a knob.
fn one(name: &str, domain: impl Into<Domain>) -> Vec<KnobParameter> {
    vec![KnobParameter { name: name.to_owned(), place: 0, domain: domain.into() }]
}

impl Value<'_> {
    /// The choice with a rank.
    fn choice<T: Copy>(&self, choices: &[T], otherwise: T) -> T {
        choices.get(self.rank as usize).copied().unwrap_or(otherwise)
    }

    /// The number with a rank.
    fn number(&self, otherwise: i64) -> i64 {
        number(self.domain, self.rank, otherwise)
    }

    /// The permutation with a rank.
    fn order(&self) -> Option<Vec<usize>> {
        match self.domain {
            Domain::Permutation(orders) => Some(orders.order(self.rank)),
            _ => None,
        }
    }
}

/// The rank of a permutation.
fn rank_of_order(domain: &Domain, order: &[usize]) -> u32 {
    match domain {
        Domain::Permutation(orders) => orders.rank(order).unwrap_or(0),
        _ => 0,
    }
}
