//! Recurrences: elements are computed in order along one loop, and all other loops are free.

use tensorwright_schedule::Draft;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::{Reorder, Split, Tail, Unroll, Vectorize, loops_of};
use tensorwright_target::{Cpu, Goal};

use super::share::{PARALLEL_WORK, inner_work};

/// How many vectors of neighbours go along the recurrence together if workers share the others.
pub(super) const VECTORS: i64 = 8;

/// How many lines go along the recurrence together where their elements are apart: as many as hide the time that a
/// result takes until the next one can use it.
const LINES: i64 = 8;

/// Vectors of results that are next to each other, if the recurrence does not go along them, and several lines at a
/// time otherwise. Where its loop is the
/// outermost and there is work for several workers, blocks of results go around it.
pub(super) fn schedule(draft: &mut Draft, stage: &str, goal: &Goal<Cpu>) {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return };
    let lanes = goal.target.lanes(draft.nest.dtype(accesses.write.buffer).bytes() as i64);
    let written = |axis: &&Axis| {
        axis.extent > 1 && axis.extent * 2 >= lanes && accesses.write.stride(axis) == Some(1)
    };
    let Some(vector) = accesses.of_role(Role::Spatial).find(written).cloned() else {
        let lines = accesses.of_role(Role::Spatial).filter(|axis| axis.extent > 1).last().cloned();
        if let Some(lines) = lines {
            draft.steps(|draft| interleaved(draft, stage, &lines));
        }
        return;
    };
    let lanes = lanes.min(vector.extent);
    let loops = loops_of(&draft.nest, stage);
    let blocks = loops.first().is_some_and(|first| {
        let is_outermost = first.role == Role::Scan && vector.extent >= 2 * VECTORS * lanes;
        is_outermost && inner_work(first) >= PARALLEL_WORK
    });
    draft.steps(|draft| match blocks {
        true => in_blocks(draft, stage, &vector, lanes),
        false => in_rows(draft, stage, &vector, lanes),
    });
}

/// Several lines at a time, each with the next element of the recurrence in turn.
fn interleaved(draft: &mut Draft, stage: &str, lines: &Axis) -> bool {
    let inner = format!("{}.1", lines.name);
    let split = Split::new(&lines.name, &[LINES.min(lines.extent)]).tail(Tail::Peel);
    draft.step(stage, split)
        && innermost(draft, stage, &[], &[&inner])
        && draft.step(stage, Unroll { target: inner })
}

fn in_rows(draft: &mut Draft, stage: &str, vector: &Axis, lanes: i64) -> bool {
    let inner = format!("{}.1", vector.name);
    draft.step(stage, Split::new(&vector.name, &[lanes]).tail(Tail::Peel))
        && innermost(draft, stage, &[], &[&inner])
        && draft.step(stage, Vectorize { target: inner })
}

fn in_blocks(draft: &mut Draft, stage: &str, vector: &Axis, lanes: i64) -> bool {
    let part = |number: usize| format!("{}.{number}", vector.name);
    draft.step(stage, Split::new(&vector.name, &[VECTORS, lanes]).tail(Tail::Peel))
        && innermost(draft, stage, &[&part(0)], &[&part(1), &part(2)])
        && draft.step(stage, Vectorize { target: part(2) })
}

/// Brings some loops of a stage to the outside and others to the inside.
fn innermost(draft: &mut Draft, stage: &str, first: &[&String], last: &[&String]) -> bool {
    let all = draft.loop_names(stage);
    let others = all.iter().filter(|name| !first.contains(name) && !last.contains(name));
    let all = first.iter().copied().chain(others).chain(last.iter().copied());
    order(draft, stage, all.cloned().collect())
}

/// Brings the loops of a stage into an order, if it is another one.
pub(super) fn order(draft: &mut Draft, stage: &str, order: Vec<String>) -> bool {
    draft.loop_names(stage) == order || draft.step(stage, Reorder::new(order))
}
