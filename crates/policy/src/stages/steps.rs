//! Steps that schedules of all targets are made of.

use tensorwright_schedule::placement::{is_inlined_by_default, store_of};
use tensorwright_schedule::primitives::{Fuse, Inline, Primitive, Reorder, stages};
use tensorwright_schedule::{Draft, ScheduleError};
use tensorwright_space::Rejection;

/// Adds a step, or says which primitive refuses it and why.
pub(crate) fn apply(
    draft: &mut Draft,
    stage: &str,
    primitive: impl Into<Primitive>,
) -> Result<(), Rejection> {
    let primitive = primitive.into();
    let rule = primitive.keyword();
    let refused = |error: ScheduleError| Rejection { rule, reason: error.to_string() };
    draft.apply(stage, primitive).map_err(refused)
}

/// Fuses the first two of some loops of a stage, of which there are at least two; the fused one takes their place.
pub(crate) fn fuse_first(
    draft: &mut Draft,
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

/// Brings the loops of a stage into an order, if it is another one; says whether they are in it.
pub(crate) fn order(draft: &mut Draft, stage: &str, order: Vec<String>) -> bool {
    draft.loop_names(stage) == order || draft.step(stage, Reorder::new(order))
}

/// Brings some loops of a stage, which are next to each other, into an order, if it is another one.
pub(crate) fn order_own(
    draft: &mut Draft,
    stage: &str,
    order: Vec<String>,
) -> Result<(), Rejection> {
    let now = draft.loop_names(stage).into_iter().filter(|name| order.contains(name));
    if order.len() < 2 || now.eq(order.iter().cloned()) {
        return Ok(());
    }
    apply(draft, stage, Reorder { order })
}

/// Computes stages where they are read that schedules compute there unless they say otherwise.
pub(crate) fn inline_by_default(draft: &mut Draft) {
    for stage in stages(&draft.nest) {
        if let Some(store) = store_of(&draft.nest, &stage)
            && is_inlined_by_default(&draft.nest, store)
        {
            draft.step(&stage, Inline);
        }
    }
}
