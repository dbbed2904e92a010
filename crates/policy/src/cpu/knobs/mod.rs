//! Knobs: the kinds of decisions about a group of stages, one file each.
//!
//! A knob owns everything about its decision: which groups have it, the values and how they are connected
//! (the [`Domain`] of its parameters), what a value means (the field of [`Tiling`] that it reads and writes), the
//! value to start from, the rules that refuse values without building anything, and what it does to the
//! schedule. What the loops of a group look like as a whole is in `decode/`, which reads tilings and knows of
//! no parameter.

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

/// The knobs of a group, in the order of their parameters. Records keep points by this order, so a new knob
/// goes to the end.
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

/// What a space is made for.
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
    /// The loop or the tensor that it is about, by place among the group's; zero if the knob has one parameter.
    pub(crate) place: usize,
    /// Its values. If it is one, there is nothing to decide.
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

/// A parameter beside all that is decided.
#[derive(Clone, Copy)]
pub(crate) struct KnobContext<'a> {
    pub(crate) tiling: &'a Tiling,
    pub(crate) group: &'a Group,
    /// The loop or the tensor that the parameter is about.
    pub(crate) place: usize,
    /// Whether a stage is computed where it is read.
    pub(crate) is_inside: &'a dyn Fn(&str) -> bool,
}

/// A rule that refuses tilings without building anything: its name, and why it refuses one.
pub(crate) type Rule = (&'static str, fn(&Group, &Tiling, &Goal<Cpu>) -> Option<String>);

/// A kind of decision about a group of stages.
pub(crate) trait Knob: Debug + Sync {
    /// The parameters of a group.
    fn knob_parameters(&self, group: &Group, request: SpaceRequest<'_>) -> Vec<KnobParameter>;

    /// Decides what the value of a parameter says.
    fn read(&self, tiling: &mut Tiling, group: &Group, place: usize, value: Value<'_>);

    /// The rank of what is decided.
    fn write(&self, tiling: &Tiling, group: &Group, place: usize, domain: &Domain) -> u32;

    /// Decides as a search may start. Knobs before this one in [`KNOBS`] have decided; those after it are as
    /// in [`Tiling::plain`].
    fn start(&self, _tiling: &mut Tiling, _group: &Group, _goal: &Goal<Cpu>) {}

    /// The rules about it.
    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    /// Why the value of a parameter makes no difference beside what else is decided, if that is so. All other
    /// values of a legal point can be found in its schedule.
    fn idle(&self, _context: KnobContext<'_>) -> Option<&'static str> {
        None
    }
}

/// All rules, in the order in which they are applied.
pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    KNOBS.iter().flat_map(|knob| knob.rules()).copied()
}

/// Applies the first so many rules.
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

/// One parameter of a knob that has no other.
fn one(name: &str, domain: impl Into<Domain>) -> Vec<KnobParameter> {
    vec![KnobParameter { name: name.to_owned(), place: 0, domain: domain.into() }]
}

impl Value<'_> {
    /// The choice of a rank.
    fn choice<T: Copy>(&self, choices: &[T], otherwise: T) -> T {
        choices.get(self.rank as usize).copied().unwrap_or(otherwise)
    }

    /// The number of a rank.
    fn number(&self, otherwise: i64) -> i64 {
        number(self.domain, self.rank, otherwise)
    }

    /// The order of a rank.
    fn order(&self) -> Option<Vec<usize>> {
        match self.domain {
            Domain::Permutation(orders) => Some(orders.order(self.rank)),
            _ => None,
        }
    }
}

/// The rank of an order.
fn rank_of_order(domain: &Domain, order: &[usize]) -> u32 {
    match domain {
        Domain::Permutation(orders) => orders.rank(order).unwrap_or(0),
        _ => 0,
    }
}
