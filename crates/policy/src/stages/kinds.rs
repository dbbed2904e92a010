//! Kinds of stages: data movement, recurrences, scatters.

use tensorwright_lang::ops::CompareOp;
use tensorwright_lang::program::Expr;
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{Role, Store, Var};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::loops_of;

/// Whether loops to be unrolled select the value of a stage: a small matrix.
pub(crate) fn is_written_out(draft: &ScheduleState, stage: &str) -> bool {
    !written_loops(draft, stage).is_empty()
}

/// Whether a stage only moves data or combines a few elements: it has no reduction loop.
pub(crate) fn is_movement(draft: &ScheduleState, stage: &str) -> bool {
    loops_of(&draft.nest, stage).iter().all(|l| l.role == Role::Spatial)
}

/// Whether a stage is a recurrence.
pub(crate) fn is_recurrence(draft: &ScheduleState, stage: &str) -> bool {
    loops_of(&draft.nest, stage).iter().any(|l| l.role == Role::Scan)
}

/// Whether a stage is a scatter: its terms determine their store positions.
pub(crate) fn is_scatter(draft: &ScheduleState, stage: &str) -> bool {
    store_of(&draft.nest, stage).is_some_and(Store::is_scatter)
}

/// Whether a stage has loop-carried dependences: rules schedule it.
pub(crate) fn is_in_order(draft: &ScheduleState, stage: &str) -> bool {
    is_recurrence(draft, stage) || is_scatter(draft, stage)
}

/// The maximum iterations of an unrolled loop.
const MOST_WRITTEN: i64 = 8;

/// The loops of a stage that select its value.
pub(crate) fn written_loops(draft: &ScheduleState, stage: &str) -> Vec<Axis> {
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
