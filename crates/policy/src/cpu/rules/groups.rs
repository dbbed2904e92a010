//! Groups of stages for rule-based scheduling.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::placement::with_epilogues;

use crate::stages::steps::inline_by_default;

/// Stages that are scheduled together.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The outermost stage.
    pub(super) root: String,
    /// A reduction that is computed inside the tiles of the root.
    pub(super) reduction: Option<String>,
}

/// Inlines cheap stages, and finds the groups of the rest.
pub(super) fn place(draft: &mut ScheduleState) -> Vec<Group> {
    inline_by_default(draft);
    let pairs = with_epilogues(&draft.nest).into_iter();
    pairs.map(|(root, reduction)| Group { root, reduction }).collect()
}

/// The groups of some stages: a reduction is scheduled with its reader if that is among them.
pub(super) fn of(draft: &ScheduleState, stages: &[String]) -> Vec<Group> {
    let mut found = Vec::new();
    for (root, reduction) in with_epilogues(&draft.nest) {
        let is_ours = |stage: &String| stages.contains(stage);
        let reduction = reduction.filter(is_ours);
        match is_ours(&root) {
            true => found.push(Group { root, reduction }),
            false => found.extend(reduction.map(|root| Group { root, reduction: None })),
        }
    }
    found
}
