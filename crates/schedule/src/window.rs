//! [`Window`]: a large nest of which a piece is in view, so that steps cost as much as the piece is large.
//!
//! ```text
//! before          | nest.body, in view | after
//! for i { a(i) }  | for i { c(i) }     | for i { e(i) }
//! for i { b(i) }  | for i { d(i) }     | for i { f(i) }
//! ```
//!
//! Whoever looks at the body sees the piece alone. Buffers and variables are those of the whole nest, and
//! what stands around is known by the buffers that it mentions and by its size. So a step on the piece is a step on the nest: one
//! that needs all that mentions a buffer is refused if some of that is out of view ([`refuse_hidden`]).

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use crate::nest::{BufferId, LoopNest, Node, for_each_store};
use crate::primitives::{Primitive, Reach, store_of};
use crate::refusal::Refusal;

/// Nests with more trees are scheduled in pieces.
const WHOLE: usize = 512;

/// The trees of a piece.
const PIECE: usize = 128;

/// The trees before the one that a step is about that are in view with it: they were scheduled, so each may hold much.
const BEHIND: usize = 8;

/// How often a schedule may have steps that need the whole nest before all of it stays in view: making a piece of it
/// takes longer than such a step.
const MOST_WIDE: usize = 32;

/// A nest of which a piece is in view.
#[derive(Debug)]
pub struct Window {
    nest: LoopNest,
    before: Vec<Node>,
    /// The next tree is the last one.
    after: Vec<Node>,
    /// How often the whole nest had to be in view.
    wide: usize,
}

impl Window {
    /// A nest with nothing in view.
    #[must_use]
    pub fn new(nest: LoopNest) -> Self {
        let mut window = Self { nest, before: Vec::new(), after: Vec::new(), wide: 0 };
        window.hide();
        mem::swap(&mut window.before, &mut window.after);
        window.after.reverse();
        window
    }

    /// Whether a nest is large enough to be scheduled in pieces.
    #[must_use]
    pub fn suits(nest: &LoopNest) -> bool {
        nest.body.len() > WHOLE
    }

    /// Shows the next piece; says whether there is one.
    pub fn advance(&mut self) -> bool {
        self.hide();
        self.reveal(PIECE);
        !self.nest.body.is_empty()
    }

    /// The nest with the piece that is in view.
    #[must_use]
    pub fn nest(&self) -> &LoopNest {
        &self.nest
    }

    /// Takes the nest that steps have made of the one in view.
    pub fn set(&mut self, nest: LoopNest) {
        self.nest = nest;
    }

    /// The whole nest.
    #[must_use]
    pub fn whole(mut self) -> LoopNest {
        self.widen();
        self.nest
    }

    /// Shows what a step needs.
    pub(crate) fn show(&mut self, stage: &str, primitive: &Primitive) -> &mut LoopNest {
        let is_whole = self.nest.hidden.is_empty();
        if is_whole && self.wide > MOST_WIDE {
            return &mut self.nest;
        }
        // What is at the edge of the view may need what is just beyond it.
        let is_wide = is_whole && self.nest.body.len() > WHOLE;
        let is_shown = primitive.reach() != Reach::Nest
            && (!is_wide && self.suffices(stage, primitive)
                || self.seek(stage) && self.suffices(stage, primitive));
        if !is_shown {
            self.wide += 1;
            self.widen();
        }
        &mut self.nest
    }

    /// Whether all that a step needs is in view.
    fn suffices(&self, stage: &str, primitive: &Primitive) -> bool {
        let is_in_view = |stage: &str| store_of(&self.nest, stage).is_some();
        is_in_view(stage)
            && primitive.other_stage().is_none_or(is_in_view)
            && refuse_hidden(&self.nest, stage, primitive).is_ok()
    }

    /// Brings the tree of a stage into view, with those around it; says whether there is one.
    fn seek(&mut self, stage: &str) -> bool {
        // It may be at the edge of what is in view.
        self.hide();
        let makes = |nest: &LoopNest, node: &Node| {
            let mut found = false;
            for_each_store(std::slice::from_ref(node), &mut |store| {
                let rest = stage.strip_prefix(nest.buffer(store.buffer).name.as_str());
                found |= matches!(rest, Some("" | ".copy" | ".start"));
            });
            found
        };
        let back = self.before.iter().rev().position(|node| makes(&self.nest, node));
        if let Some(back) = back {
            let first = self.before.len().saturating_sub(back + 1 + BEHIND);
            self.after.extend(self.before.drain(first..).rev());
        } else {
            let ahead = self.after.iter().rev().position(|node| makes(&self.nest, node));
            let Some(ahead) = ahead else { return false };
            let skip = ahead.saturating_sub(BEHIND);
            self.before.extend((0..skip).filter_map(|_| self.after.pop()));
        }
        while self.is_split() {
            self.after.extend(self.before.pop());
        }
        self.reveal(BEHIND + 1 + PIECE);
        true
    }

    /// Takes what is in view out of view, behind it.
    fn hide(&mut self) {
        let body = mem::take(&mut self.nest.body);
        self.note(|around, nest| body.iter().for_each(|tree| around.add(nest, tree)));
        self.before.extend(body);
    }

    /// Brings trees that follow into view. Those that write the same buffer stay together, since names of stages depend on that.
    fn reveal(&mut self, count: usize) {
        let mut shown: Vec<Node> = Vec::new();
        while let Some(next) = self.after.last() {
            if shown.len() >= count && !shown.last().is_some_and(|last| write_alike(last, next)) {
                break;
            }
            shown.extend(self.after.pop());
        }
        self.note(|around, nest| shown.iter().for_each(|tree| around.remove(nest, tree)));
        self.nest.body = shown.into();
    }

    /// Brings everything into view.
    fn widen(&mut self) {
        let mut all = mem::take(&mut self.before);
        all.extend(mem::take(&mut self.nest.body));
        all.extend(self.after.drain(..).rev());
        self.nest.body = all.into();
        self.nest.hidden = Arc::default();
    }

    /// Whether trees that belong together are on both sides of an empty view.
    fn is_split(&self) -> bool {
        let ends = self.before.last().zip(self.after.last());
        ends.is_some_and(|(before, after)| write_alike(before, after))
    }

    fn note(&mut self, change: impl FnOnce(&mut crate::nest::HiddenTrees, &LoopNest)) {
        let mut around = mem::take(&mut self.nest.hidden);
        change(Arc::make_mut(&mut around), &self.nest);
        self.nest.hidden = around;
    }
}

/// Whether two trees write the same buffer.
fn write_alike(a: &Node, b: &Node) -> bool {
    let written = |node: &Node| {
        let mut written: BTreeSet<BufferId> = BTreeSet::new();
        for_each_store(std::slice::from_ref(node), &mut |store| {
            written.insert(store.buffer);
        });
        written
    };
    !written(a).is_disjoint(&written(b))
}

/// Refuses a step that needs to see more than what is in view.
pub(crate) fn refuse_hidden(
    nest: &LoopNest,
    stage: &str,
    primitive: &Primitive,
) -> Result<(), Refusal> {
    if nest.hidden.is_empty() {
        return Ok(());
    }
    let is_hidden = match primitive.reach() {
        Reach::Stage => false,
        Reach::Readers => store_of(nest, stage).is_none_or(|store| nest.hidden.has(store.buffer)),
        Reach::Nest => true,
    };
    match is_hidden {
        false => Ok(()),
        true => Err(Refusal::new(format!(
            "`{stage}` cannot be moved: the program is scheduled in pieces, and another piece mentions it"
        ))
        .help("apply the step to the whole program")),
    }
}
