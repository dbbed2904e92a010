//! `place`: where a stage is computed that another one reads. A decision about a stage, not about the tiles
//! of a group.

use tensorwright_schedule::Draft;
use tensorwright_schedule::nest::Owner;
use tensorwright_schedule::placement::{is_cheap, only_reader, reader_wants_inlined, store_of};
use tensorwright_schedule::primitives::{ComputeAt, Inline, stages};
use tensorwright_space::parameter::{Categorical, Domain};

use crate::cpu::rules::is_written_out;

/// The name of the parameter.
pub(crate) const NAME: &str = "place";

/// The rule about what is inlined.
pub(crate) const INLINE: &str = "inline";

/// Where a stage is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On its own, before its readers.
    Root,
    /// Wherever it is read.
    Inline,
    /// Inside the outermost loops of its reader.
    Outer,
    /// Inside the loops around the register tile of its reader.
    Middle,
}

/// A stage whose place is a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) stage: String,
    /// The stage that reads it, if it is one alone.
    pub(crate) reader: Option<String>,
    /// Where it may be computed. The default comes first: searches that start from nothing start there.
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
    /// Forgets places inside the loops of its reader unless the reader has some; says whether a choice is left.
    pub(crate) fn keep_inside_if(&mut self, has_loops: impl Fn(&str) -> bool) -> bool {
        if !self.reader.as_deref().is_some_and(has_loops) {
            self.reader = None;
            self.choices.retain(|place| !place.is_inside());
        }
        self.choices.len() > 1
    }

    /// The choices as a parameter's.
    pub(crate) fn domain(&self) -> Domain {
        Categorical::new(self.choices.iter().map(|place| place.name())).into()
    }

    /// The place of a rank.
    pub(crate) fn place(&self, rank: u32) -> Place {
        self.choices.get(rank as usize).copied().unwrap_or(Place::Root)
    }
}

/// The stages that others read, in the order of the program, with the places that primitives allow. The draft
/// inlines what the default schedule would.
pub(crate) fn candidates(begun: &Draft) -> (Draft, Vec<Placement>) {
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
        let wanted = is_cheap(store) && reader_wants_inlined(&draft.nest, store);
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
            found.push(Placement { stage, reader, choices });
        }
    }
    (draft, found)
}

/// Whether a stage can be computed inside the loops of its reader.
fn can_be_inside(draft: &Draft, stage: &str, reader: &str) -> bool {
    let Some(at) = draft.loop_names(reader).into_iter().next() else { return false };
    draft.clone().step(stage, ComputeAt { consumer: reader.to_owned(), at })
}
