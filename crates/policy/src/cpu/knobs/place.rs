//! `place`: the compute location of a stage that others read.
//!
//! This is a decision about a stage, not about the tiles of a group.

use std::collections::HashMap;

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::{LoopNest, Owner};
use tensorwright_schedule::placement::{is_inlined_by_default, only_reader, store_of};
use tensorwright_schedule::primitives::{ComputeAt, Inline, stages};
use tensorwright_space::parameter::{Categorical, Domain};

use crate::stages::kinds::is_written_out;

/// The name of the parameter.
pub(crate) const NAME: &str = "place";

/// The rule on inlining.
const INLINE: &str = "inline";

/// The rules on compute locations, in order of application.
pub(crate) const RULES: [&str; 2] = [NAME, INLINE];

/// The maximum number of elements that a value reads after inlining: more of them take compilers
/// long, and each is recomputed at every reader.
const MOST_READS: u64 = 512;

/// The compute location of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the root level, before its readers.
    Root,
    /// Inlined into its readers.
    Inline,
    /// Inside the outermost loops of its reader.
    Outer,
    /// Inside the loops around the register tile of its reader.
    Middle,
}

/// A stage whose compute location is a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) stage: String,
    /// Its reader, if there is only one.
    pub(crate) reader: Option<String>,
    /// The stage whose loops enclose the reader: the reader itself or its epilogue.
    root: Option<String>,
    /// The possible locations. The default comes first, where searches without hints start.
    pub(crate) choices: Vec<Place>,
}

impl Place {
    /// Whether it is inside the loops of the reader.
    pub(crate) fn is_inside(self) -> bool {
        matches!(self, Self::Outer | Self::Middle)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Inline => "inline",
            Self::Outer => "outer",
            Self::Middle => "middle",
        }
    }
}

impl Placement {
    /// Removes locations inside the loops of its reader unless the reader has any; returns whether
    /// a choice remains.
    pub(crate) fn keep_inside_if(&mut self, root_of: impl Fn(&str) -> Option<String>) -> bool {
        self.root = self.reader.as_deref().and_then(root_of);
        if self.root.is_none() {
            self.reader = None;
            self.choices.retain(|place| !place.is_inside());
        }
        self.choices.len() > 1
    }

    /// The domain of the parameter.
    pub(crate) fn domain(&self) -> Domain {
        Categorical::new(self.choices.iter().map(|place| place.name())).into()
    }

    /// The location with a rank.
    pub(crate) fn place(&self, rank: u32) -> Place {
        self.choices.get(rank as usize).copied().unwrap_or(Place::Root)
    }
}

/// The compute locations of the stages of a program. Their parameters come first in a sketch, so a
/// placement and its parameter have the same index.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Stages whose location is a parameter, in program order.
    pub(crate) placements: Vec<Placement>,
    /// The parameter index of each of them.
    parameters: HashMap<String, usize>,
    /// The stages in program order with their reads: indices of earlier stages, or `None` for
    /// inputs.
    reads: Vec<(String, Vec<Option<usize>>)>,
}

/// Why stages cannot be computed at the locations of the values.
#[derive(Debug, Clone)]
pub(crate) struct PlacementError {
    /// The rule.
    pub(crate) rule: &'static str,
    pub(crate) reason: String,
    /// The parameters that the rule depends on.
    pub(crate) parameters: Vec<usize>,
}

impl Places {
    /// The locations of the stages of a nest.
    pub(crate) fn new(placements: Vec<Placement>, nest: &LoopNest) -> Self {
        let numbered = placements.iter().enumerate();
        let parameters = numbered.map(|(at, placement)| (placement.stage.clone(), at)).collect();
        Self { placements, parameters, reads: reads(nest) }
    }

    /// The location of a stage; the root level if it has no parameter.
    pub(crate) fn of(&self, stage: &str, ranks: &[u32]) -> Place {
        let parameter = self.parameters.get(stage).copied();
        let chosen = parameter.and_then(|at| self.placements.get(at).zip(ranks.get(at)));
        chosen.map_or(Place::Root, |(placement, rank)| placement.place(*rank))
    }

    /// Why stages cannot be computed at the locations of the values, if so.
    pub(crate) fn placement_error(&self, ranks: &[u32]) -> Option<PlacementError> {
        self.homeless(ranks).or_else(|| self.inlined_too_often(ranks))
    }

    /// Rejects a stage inside loops of a reader that is itself inlined or moved.
    fn homeless(&self, ranks: &[u32]) -> Option<PlacementError> {
        let mut chosen = self.placements.iter().zip(ranks).enumerate();
        let is_homeless = |placement: &Placement, rank: u32| {
            let is_moved = |root: &str| self.of(root, ranks) != Place::Root;
            placement.place(rank).is_inside() && placement.root.as_deref().is_some_and(is_moved)
        };
        let (at, (Placement { stage, root, .. }, _)) =
            chosen.find(|(_, (placement, rank))| is_homeless(placement, **rank))?;
        let root = root.as_deref().unwrap_or_default();
        let reason = format!(
            "{stage} cannot be computed inside the loops of {root}, which is itself computed at its reader"
        );
        let parameters = std::iter::once(at).chain(self.parameters.get(root).copied()).collect();
        Some(PlacementError { rule: NAME, reason, parameters })
    }

    /// Rejects a stage whose value reads too many elements after transitive inlining.
    fn inlined_too_often(&self, ranks: &[u32]) -> Option<PlacementError> {
        let mut reads: Vec<u64> = Vec::with_capacity(self.reads.len());
        for (stage, of) in &self.reads {
            let is_inlined = |at: &usize| self.of(&self.reads[*at].0, ranks) == Place::Inline;
            let one = |producer: &Option<usize>| match producer {
                Some(at) if is_inlined(at) => reads[*at],
                _ => 1,
            };
            let all = of.iter().map(one).fold(0, u64::saturating_add);
            if all > MOST_READS {
                let reason = format!(
                    "the value of {stage} reads {all} elements after inlining, limit {MOST_READS}"
                );
                let chosen = self.placements.iter().zip(ranks).enumerate();
                let inlined = chosen.filter(|(_, (p, rank))| p.place(**rank) == Place::Inline);
                let parameters = inlined.map(|(at, _)| at).collect();
                return Some(PlacementError { rule: INLINE, reason, parameters });
            }
            reads.push(all);
        }
        None
    }
}

/// The stages in program order, with their reads.
fn reads(nest: &LoopNest) -> Vec<(String, Vec<Option<usize>>)> {
    let names = stages(nest);
    let place_of: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let of = |(at, name): (usize, &String)| {
        let reads = Accesses::of(nest, name).map_or_else(Vec::new, |accesses| accesses.reads);
        let producer = |tensor: &str| place_of.get(tensor).copied().filter(|earlier| *earlier < at);
        let tensors = reads.iter().map(|read| producer(&nest.buffer(read.buffer).name));
        (name.clone(), tensors.collect())
    };
    names.iter().enumerate().map(of).collect()
}

/// The stages that others read, in program order, with their legal locations. The draft inlines
/// what the default schedule inlines.
pub(crate) fn candidates(begun: &ScheduleState) -> (ScheduleState, Vec<Placement>) {
    let mut draft = begun.clone();
    let mut found = Vec::new();
    for stage in stages(&begun.nest) {
        let Some(store) = store_of(&draft.nest, &stage) else { continue };
        let buffer = store.buffer;
        if draft.nest.buffer(buffer).owner != Owner::Intermediate || store.combine.is_some() {
            continue;
        }
        if is_written_out(&draft, &stage) {
            continue;
        }
        let wanted = is_inlined_by_default(&draft.nest, store);
        let mut inlined = draft.clone();
        let can_inline = inlined.step(&stage, Inline);
        let reader = only_reader(&draft.nest, buffer);
        let reader = reader.filter(|reader| can_be_inside(&draft, &stage, reader));
        let mut choices = vec![Place::Root];
        if can_inline {
            choices.insert(usize::from(!wanted), Place::Inline);
        }
        if reader.is_some() {
            choices.extend([Place::Outer, Place::Middle]);
        }
        if wanted && can_inline {
            draft = inlined;
        }
        if choices.len() > 1 {
            found.push(Placement { stage, reader, root: None, choices });
        }
    }
    (draft, found)
}

/// Whether a stage can be computed inside the loops of its reader.
fn can_be_inside(draft: &ScheduleState, stage: &str, reader: &str) -> bool {
    let Some(at) = draft.loop_names(reader).into_iter().next() else { return false };
    draft.clone().step(stage, ComputeAt { consumer: reader.to_owned(), at })
}
