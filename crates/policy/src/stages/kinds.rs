//! What kind of stage a stage is.

use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::program::Expr;
use tensorwright_schedule::Draft;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Role, Store, Var};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::loops_of;

/// Whether the value of a stage is selected by loops that are to be unrolled: a small matrix.
pub(crate) fn is_written_out(draft: &Draft, stage: &str) -> bool {
    !written_loops(draft, stage).is_empty()
}

/// Whether a stage only moves data or combines a few elements of it: it has no reduction loop.
pub(crate) fn is_movement(draft: &Draft, stage: &str) -> bool {
    loops_of(&draft.nest, stage).iter().all(|l| l.role == Role::Spatial)
}

/// Whether the elements of a stage are computed in order, from each other.
pub(crate) fn is_recurrence(draft: &Draft, stage: &str) -> bool {
    loops_of(&draft.nest, stage).iter().any(|l| l.role == Role::Scan)
}

/// Whether the terms of a stage decide to which elements they go.
pub(crate) fn is_scatter(draft: &Draft, stage: &str) -> bool {
    store_of(&draft.nest, stage).is_some_and(Store::is_scatter)
}

/// Whether some loops of a stage run one iteration after the other: rules schedule it.
pub(crate) fn is_in_order(draft: &Draft, stage: &str) -> bool {
    is_recurrence(draft, stage) || is_scatter(draft, stage)
}

/// The most iterations of a loop that is unrolled.
const MOST_WRITTEN: i64 = 8;

/// The loops of a stage along which its value is selected.
pub(crate) fn written_loops(draft: &Draft, stage: &str) -> Vec<Axis> {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Vec::new() };
    let Some(store) = store_of(&draft.nest, stage) else { return Vec::new() };
    if store.combine.is_some() {
        return Vec::new();
    }
    let mut selected: Vec<Var> = Vec::new();
    store.value.walk(&mut |expr| {
        if let Expr::Select(condition, ..) = expr
            && let Expr::CompareIndex(CompareOp::Eq, left, right) = &**condition
            && let (Some(var), Some(_)) = (left.as_axis(), right.as_constant())
        {
            selected.push(var);
        }
    });
    let is_written = |axis: &Axis| axis.extent <= MOST_WRITTEN && selected.contains(&axis.var);
    accesses.axes.into_iter().filter(is_written).collect()
}
