//! [`Window`]: schedules a large nest in parts, at local cost.
//!
//! ```text
//! before          | nest.body, in view | after
//! for i { a(i) }  | for i { c(i) }     | for i { e(i) }
//! for i { b(i) }  | for i { d(i) }     | for i { f(i) }
//! ```
//!
//! Code that inspects the body only sees the part in the window. Buffers and variables are those of
//! the whole nest; the hidden trees are summarized by the buffers that they mention and by their
//! size. So a step on the window is a step on the nest. A step that needs all nodes that mention a
//! buffer is refused if some of them are hidden ([`refuse_hidden`]).

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use crate::nest::{BufferId, LoopNest, Node, for_each_store};
use crate::primitives::{Primitive, Reach, store_of};
use crate::refusal::Refusal;

/// Nests with more trees are scheduled in parts.
const WHOLE: usize = 512;

/// The trees of a window.
const PIECE: usize = 48;

/// The trees before the one of the current step that stay in the window: they are scheduled, so
/// each may be large.
const BEHIND: usize = 8;

/// The number of steps that may need the whole nest before all of it stays visible: creating a
/// window takes longer than such a step.
const MOST_WIDE: usize = 32;

/// A nest of which only a part is visible.
#[derive(Debug)]
pub struct Window {
    nest: LoopNest,
    before: Vec<Node>,
    /// The next tree is the last element.
    after: Vec<Node>,
    /// The number of times that the whole nest had to be visible.
    wide: usize,
}

impl Window {
    /// A nest with an empty window.
    #[must_use]
    pub fn new(nest: LoopNest) -> Self {
        let mut window = Self { nest, before: Vec::new(), after: Vec::new(), wide: 0 };
        window.hide();
        mem::swap(&mut window.before, &mut window.after);
        window.after.reverse();
        window
    }

    /// Whether a nest is large enough to be scheduled in parts.
    #[must_use]
    pub fn suits(nest: &LoopNest) -> bool {
        nest.body.len() > WHOLE
    }

    /// Moves to the next window; returns whether there is one.
    pub fn advance(&mut self) -> bool {
        self.hide();
        self.reveal(PIECE);
        !self.nest.body.is_empty()
    }

    /// The nest with the visible trees as its body.
    #[must_use]
    pub fn nest(&self) -> &LoopNest {
        &self.nest
    }

    /// Replaces the visible nest after steps on it.
    pub fn set(&mut self, nest: LoopNest) {
        self.nest = nest;
    }

    /// The whole nest.
    #[must_use]
    pub fn whole(mut self) -> LoopNest {
        self.widen();
        self.nest
    }

    /// Makes everything visible that a step needs.
    pub(crate) fn show(&mut self, stage: &str, primitive: &Primitive) -> &mut LoopNest {
        let is_whole = self.nest.hidden.is_empty();
        if is_whole && self.wide > MOST_WIDE {
            return &mut self.nest;
        }
        // A step at the edge of the window may need the next trees.
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

    /// Whether everything that a step needs is visible.
    fn suffices(&self, stage: &str, primitive: &Primitive) -> bool {
        let is_in_view = |stage: &str| store_of(&self.nest, stage).is_some();
        is_in_view(stage)
            && primitive.other_stage().is_none_or(is_in_view)
            && refuse_hidden(&self.nest, stage, primitive).is_ok()
    }

    /// Moves the window to the tree of a stage and its neighbors; returns whether the stage exists.
    fn seek(&mut self, stage: &str) -> bool {
        // The stage may be at the edge of the window.
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

    /// Hides the visible trees, before the window.
    fn hide(&mut self) {
        let body = mem::take(&mut self.nest.body);
        self.note(|around, nest| body.iter().for_each(|tree| around.add(nest, tree)));
        self.before.extend(body);
    }

    /// Shows the next trees. Trees that write the same buffer stay together, because stage names
    /// depend on that.
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

    /// Shows all trees.
    fn widen(&mut self) {
        let mut all = mem::take(&mut self.before);
        all.extend(mem::take(&mut self.nest.body));
        all.extend(self.after.drain(..).rev());
        self.nest.body = all.into();
        self.nest.hidden = Arc::default();
    }

    /// Whether trees that belong together are on both sides of an empty window.
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

/// Refuses a step that needs hidden trees.
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
