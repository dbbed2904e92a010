//! Which stages are scheduled together.

use tensorwright_schedule::Draft;
use tensorwright_schedule::placement::{is_inlined_by_default, store_of, with_epilogues};
use tensorwright_schedule::primitives::{Inline, stages};

/// Stages that are scheduled together.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The stage whose loops are outermost.
    pub(super) root: String,
    /// A reduction that is computed inside the tiles of the root.
    pub(super) reduction: Option<String>,
}

/// Inlines what rules inline, and finds the groups of the rest.
pub(super) fn place(draft: &mut Draft) -> Vec<Group> {
    for stage in stages(&draft.nest) {
        if let Some(store) = store_of(&draft.nest, &stage)
            && is_inlined_by_default(&draft.nest, store)
        {
            draft.step(&stage, Inline);
        }
    }
    let pairs = with_epilogues(&draft.nest).into_iter();
    pairs.map(|(root, reduction)| Group { root, reduction }).collect()
}
