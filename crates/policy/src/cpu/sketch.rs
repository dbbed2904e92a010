//! The sketch of processors: a program as groups of stages with knobs.

use tensorwright_schedule::Draft;
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::primitives::stages;
use tensorwright_space::Parameter;
use tensorwright_target::{Cpu, Goal};

use crate::Options;
use crate::cpu::group::Group;
use crate::cpu::groups::groups;
use crate::cpu::knobs::place::{self, Place, Placement};
use crate::cpu::knobs::{KNOBS, Knob, Value, Wish};
use crate::cpu::tiling::Tiling;
use crate::sketch::Values;

/// The most elements that a value reads, with all that is inlined: compilers take long for more, and every one
/// of them is computed again wherever it is read.
const MOST_READS: u64 = 512;

/// A parameter of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The knob that knows what its values mean.
    pub(crate) knob: &'static dyn Knob,
    /// The loop or the tensor that it is about, by place among the group's.
    pub(crate) place: usize,
}

/// Why stages cannot be computed where the values say.
#[derive(Debug, Clone)]
pub(crate) struct Misplaced {
    /// The rule.
    pub(crate) rule: &'static str,
    pub(crate) reason: String,
    /// The stages to blame.
    pub(crate) stages: Vec<String>,
}

/// A program as groups of stages with knobs.
#[derive(Debug, Clone)]
pub(crate) struct CpuSketch {
    /// The nest to schedule, and the steps that chose the algorithm.
    pub(crate) begun: Draft,
    pub(crate) goal: Goal<Cpu>,
    /// The parameters: of the placements, then of the groups.
    pub(crate) parameters: Vec<Parameter>,
    /// What the parameters of groups are about: those after the placements'.
    settings: Vec<Setting>,
    /// Stages whose place is a parameter, in the order of the program.
    pub(crate) placements: Vec<Placement>,
    /// Groups in the order of the program.
    pub(crate) groups: Vec<Group>,
    /// Stages that rules schedule.
    pub(crate) fixed: Vec<String>,
    /// The stages in the order of the program, with what each reads: earlier stages by place, or inputs.
    reads: Vec<(String, Vec<Option<usize>>)>,
}

impl CpuSketch {
    /// The sketch of what a draft has begun: it may have rewritten stages, and nothing else.
    pub(crate) fn of(begun: Draft, goal: &Goal<Cpu>, options: &Options) -> Self {
        let wish = Wish { goal, options };
        // A program of one stage needs no mention of its name.
        let is_alone = stages(&begun.nest).len() == 1;
        let name_of = |stage: &str, name: &str| match is_alone {
            true => name.to_owned(),
            false => format!("{stage}:{name}"),
        };
        let (draft, mut placements) = place::candidates(&begun);
        let is_rewritten = !begun.schedule.steps.is_empty();
        let found = groups(&draft, wish, is_rewritten);
        // Only groups have loops in which others may be computed.
        let is_tiled = |reader: &str| found.tiled.iter().any(|group| group.has(reader));
        placements.retain_mut(|placement| placement.keep_inside_if(is_tiled));
        let place = |p: &Placement| Parameter::new(name_of(&p.stage, place::NAME), p.domain());
        let mut sketch = Self {
            parameters: placements.iter().map(place).collect(),
            settings: Vec::new(),
            goal: goal.clone(),
            placements,
            groups: found.tiled,
            fixed: found.fixed,
            reads: reads(&begun.nest),
            begun,
        };
        for group in &mut sketch.groups {
            let first = sketch.parameters.len();
            for knob in KNOBS {
                for offer in knob.offers(group, wish) {
                    let parameter =
                        Parameter::new(name_of(group.stage(), &offer.name), offer.domain);
                    if parameter.count() > 1 {
                        sketch.parameters.push(parameter);
                        sketch.settings.push(Setting { knob: *knob, place: offer.place });
                    }
                }
            }
            group.parameters = first..sketch.parameters.len();
        }
        sketch
    }

    /// What the values of all parameters say about a group.
    pub(crate) fn tiling(&self, group: &Group, values: Values<'_>) -> Tiling {
        let mut tiling = Tiling::plain(group);
        for (at, parameter, Setting { knob, place }) in self.of_group(group) {
            let (domain, rank) = (parameter.domain(), values.ranks.get(at).copied().unwrap_or(0));
            let is_free = values.free.get(at).copied().unwrap_or(true);
            knob.read(&mut tiling, group, place, Value { domain, rank, is_free });
        }
        tiling.settle(group)
    }

    /// Sets the parameters of a group to what a tiling says.
    pub(crate) fn write(&self, group: &Group, tiling: &Tiling, ranks: &mut [u32]) {
        for (at, parameter, Setting { knob, place }) in self.of_group(group) {
            if let Some(rank) = ranks.get_mut(at) {
                *rank = knob.write(tiling, group, place, parameter.domain());
            }
        }
    }

    /// The parameters of a group, with their places.
    pub(crate) fn of_group(
        &self,
        group: &Group,
    ) -> impl Iterator<Item = (usize, &Parameter, Setting)> {
        let first = group.parameters.start - self.placements.len();
        let settings = self.settings.get(first..).unwrap_or_default();
        let parameters = self.parameters.get(group.parameters.clone()).unwrap_or_default();
        let all = group.parameters.clone().zip(parameters).zip(settings);
        all.map(|((at, parameter), setting)| (at, parameter, *setting))
    }

    /// The groups that are scheduled on their own, with what is decided about them.
    pub(crate) fn tilings(&self, values: Values<'_>) -> impl Iterator<Item = (&Group, Tiling)> {
        let at_root = move |group: &&Group| self.place_of(&group.root, values) == Place::Root;
        self.groups.iter().filter(at_root).map(move |group| (group, self.tiling(group, values)))
    }

    /// Why stages cannot be computed where the values say, if that is so.
    pub(crate) fn misplaced(&self, values: Values<'_>) -> Option<Misplaced> {
        self.homeless(values).or_else(|| self.inlined_too_often(values))
    }

    /// A stage that is to be computed inside loops of its reader that are not there, since the reader is
    /// itself computed where it is read.
    fn homeless(&self, values: Values<'_>) -> Option<Misplaced> {
        self.placements.iter().zip(values.ranks).find_map(|(placement, rank)| {
            let Placement { stage, reader, .. } = placement;
            let reader = reader.as_deref().filter(|_| placement.place(*rank).is_inside())?;
            let root = &self.groups.iter().find(|group| group.has(reader))?.root;
            let reason = format!(
                "{stage} cannot be computed inside the loops of {root}, which is itself computed where it is read"
            );
            let stages = vec![stage.clone(), root.clone()];
            let is_moved = self.place_of(root, values) != Place::Root;
            is_moved.then_some(Misplaced { rule: place::NAME, reason, stages })
        })
    }

    /// A stage whose value reads too much, since what it reads is inlined, and what that reads, and so on.
    fn inlined_too_often(&self, values: Values<'_>) -> Option<Misplaced> {
        let is_inlined = |stage: &str| self.place_of(stage, values) == Place::Inline;
        let mut reads: Vec<u64> = Vec::with_capacity(self.reads.len());
        for (stage, of) in &self.reads {
            let one = |producer: &Option<usize>| match producer {
                Some(at) if is_inlined(&self.reads[*at].0) => reads[*at],
                _ => 1,
            };
            let all = of.iter().map(one).fold(0, u64::saturating_add);
            if all > MOST_READS {
                let reason = format!(
                    "the value of {stage} reads {all} elements with all that is inlined, more than {MOST_READS}"
                );
                let inlined = self.placements.iter().map(|placement| &placement.stage);
                let stages = inlined.filter(|stage| is_inlined(stage)).cloned().collect();
                return Some(Misplaced { rule: place::INLINE, reason, stages });
            }
            reads.push(all);
        }
        None
    }

    /// The parameter that says where a stage is computed.
    pub(crate) fn place_parameter(&self, stage: &str) -> Option<usize> {
        self.placements.iter().position(|placement| placement.stage == stage)
    }

    /// Where a stage is computed; on its own if that is no parameter.
    pub(crate) fn place_of(&self, stage: &str, values: Values<'_>) -> Place {
        let mut all = self.placements.iter().zip(values.ranks);
        let found = all.find(|(placement, _)| placement.stage == stage);
        found.map_or(Place::Root, |(placement, rank)| placement.place(*rank))
    }
}

/// The stages in the order of the program, with what each reads.
fn reads(nest: &LoopNest) -> Vec<(String, Vec<Option<usize>>)> {
    let names = stages(nest);
    let of = |(at, name): (usize, &String)| {
        let reads = Accesses::of(nest, name).map_or_else(Vec::new, |accesses| accesses.reads);
        let producer = |tensor: &str| names[..at].iter().position(|stage| stage == tensor);
        let tensors = reads.iter().map(|read| producer(&nest.buffer(read.buffer).name));
        (name.clone(), tensors.collect())
    };
    names.iter().enumerate().map(of).collect()
}
