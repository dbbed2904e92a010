//! Common schedule steps of all targets.

use tensorwright_schedule::placement::{is_inlined_by_default, store_of};
use tensorwright_schedule::primitives::{Fuse, Inline, Primitive, Reorder, stages};
use tensorwright_schedule::{ScheduleError, ScheduleState};
use tensorwright_space::Rejection;

/// Applies a step; returns which primitive refuses it, and why.
pub(crate) fn apply(
    draft: &mut ScheduleState,
    stage: &str,
    primitive: impl Into<Primitive>,
) -> Result<(), Rejection> {
    let primitive = primitive.into();
    let rule = primitive.keyword();
    let refused = |error: ScheduleError| Rejection { rule, reason: error.to_string() };
    draft.apply(stage, primitive).map_err(refused)
}

/// Fuses the first two of at least two loops of a stage; the fused loop replaces them in the list.
pub(crate) fn fuse_first(
    draft: &mut ScheduleState,
    stage: &str,
    loops: &mut Vec<String>,
) -> Result<(), Rejection> {
    if let [outer, inner, ..] = loops.as_slice() {
        let name = format!("{outer}_{inner}");
        let (outer, inner) = (outer.clone(), inner.clone());
        apply(draft, stage, Fuse { outer, inner, name: Some(name.clone()) })?;
        loops.splice(..2, [name]);
    }
    Ok(())
}

/// Reorders the loops of a stage, if the order changes; returns whether they are in that order.
pub(crate) fn order(draft: &mut ScheduleState, stage: &str, order: Vec<String>) -> bool {
    draft.loop_names(stage) == order || draft.step(stage, Reorder::new(order))
}

/// Reorders some adjacent loops of a stage, if the order changes.
pub(crate) fn order_own(
    draft: &mut ScheduleState,
    stage: &str,
    order: Vec<String>,
) -> Result<(), Rejection> {
    let now = draft.loop_names(stage).into_iter().filter(|name| order.contains(name));
    if order.len() < 2 || now.eq(order.iter().cloned()) {
        return Ok(());
    }
    apply(draft, stage, Reorder { order })
}

/// Inlines the stages that schedules inline by default.
pub(crate) fn inline_by_default(draft: &mut ScheduleState) {
    for stage in stages(&draft.nest) {
        if let Some(store) = store_of(&draft.nest, &stage)
            && is_inlined_by_default(&draft.nest, store)
        {
            draft.step(&stage, Inline);
        }
    }
}
