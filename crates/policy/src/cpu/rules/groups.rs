//! Which stages are scheduled together.

use tensorwright_schedule::Draft;
use tensorwright_schedule::placement::{epilogue_of, is_cheap, reader_wants_inlined, store_of};
use tensorwright_schedule::primitives::{Inline, stages};

/// Stages that are scheduled together.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The stage whose loops are outermost.
    pub(super) root: String,
    /// A reduction that is computed inside the tiles of the root.
    pub(super) reduction: Option<String>,
}

/// Inlines what is cheap, and finds the groups of the rest.
pub(super) fn place(draft: &mut Draft) -> Vec<Group> {
    for stage in stages(&draft.nest) {
        if let Some(store) = store_of(&draft.nest, &stage)
            && is_cheap(store)
            && reader_wants_inlined(&draft.nest, store)
        {
            draft.step(&stage, Inline);
        }
    }
    let names = stages(&draft.nest);
    let mut groups: Vec<Group> = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    for stage in names.iter().rev() {
        if taken.contains(stage) {
            continue;
        }
        let reduction = epilogue_of(&draft.nest, stage);
        taken.extend(reduction.clone());
        groups.push(Group { root: stage.clone(), reduction });
    }
    groups.reverse();
    groups
}
