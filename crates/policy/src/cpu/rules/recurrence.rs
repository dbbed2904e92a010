//! Scheduling of recurrences: one sequential loop, all other loops free.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{
    MAX_LANES, Parallel, Rfactor, Segment, Split, Tail, Unroll, Vectorize, loops_of,
};

use super::share::inner_work;
use crate::cpu::work::PARALLEL_WORK;
use crate::stages::steps::order;

/// The number of vectors of neighbours that advance together if the other loops are parallel.
pub(super) const VECTORS: i64 = 8;

/// The number of lines that advance together if their elements are strided: enough to hide the
/// latency of a step, and few enough for lines a power of two apart to fit a cache.
const LINES: i64 = 4;

/// The bytes of a line to compute before the next line: those of one cache line. In between, the
/// last result stays in a register.
const STEP_BYTES: i64 = 64;

/// The number of unrolled vectors of steps: the last result stays in a register.
const RUNS: i64 = 4;

/// The number of pieces of a line per worker if there are fewer lines than workers.
const PIECES: i64 = 8;

/// The maximum size of a value whose steps and lines are unrolled.
const MOST_PARTS: usize = 48;

/// Vectorizes contiguous results. If the recurrence runs along them and combines terms
/// associatively, its steps are the lanes; otherwise a few steps of each line alternate. If its
/// loop is the outermost with enough parallel work, blocks of results enclose it. With fewer lines
/// than workers, workers share pieces of lines; the ends of pieces are a new stage, which is
/// returned for scheduling.
pub(super) fn schedule(draft: &mut ScheduleState, stage: &str, goal: &Goal<Cpu>) -> Vec<String> {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Vec::new() };
    let bytes = draft.nest.dtype(accesses.write.buffer).bytes() as i64;
    let lanes = goal.target.lanes(bytes);
    let written = |axis: &&Axis| {
        axis.extent > 1 && axis.extent * 2 >= lanes && accesses.write.stride(axis) == Some(1)
    };
    let Some(vector) = accesses.of_role(Role::Spatial).find(written).cloned() else {
        let lines = accesses.of_role(Role::Spatial).filter(|axis| axis.extent > 1).last().cloned();
        let along = accesses.of_role(Role::Scan).next().cloned();
        let is_next = |axis: &&Axis| {
            let apart = accesses.write.stride(axis).map(i64::abs);
            axis.extent > 1 && axis.extent * 2 >= lanes && apart == Some(1)
        };
        let next = along.as_ref().filter(is_next);
        if next.is_some_and(|along| draft.steps(|draft| in_pieces(draft, stage, along, goal))) {
            return vec![format!("{stage}.last")];
        }
        if next.is_some_and(|along| draft.steps(|draft| in_lanes(draft, stage, along, lanes))) {
            return Vec::new();
        }
        let steps = (STEP_BYTES / bytes.max(1)).max(1);
        draft.steps(|draft| interleaved(draft, stage, lines.as_ref(), along.as_ref(), steps));
        return Vec::new();
    };
    let lanes = lanes.min(vector.extent);
    let loops = loops_of(&draft.nest, stage);
    let blocks = loops.first().is_some_and(|first| {
        let is_outermost = first.role == Role::Scan && vector.extent >= 2 * VECTORS * lanes;
        is_outermost && inner_work(&draft.nest, first) >= PARALLEL_WORK
    });
    draft.steps(|draft| match blocks {
        true => in_blocks(draft, stage, &vector, lanes),
        false => in_rows(draft, stage, &vector, lanes),
    });
    Vec::new()
}

/// Splits a long line into pieces for each worker, in vectors of steps.
fn in_pieces(draft: &mut ScheduleState, stage: &str, along: &Axis, goal: &Goal<Cpu>) -> bool {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return false };
    let lines: i128 = accesses.of_role(Role::Spatial).map(|axis| i128::from(axis.extent)).product();
    let workers = goal.workers;
    let bytes = draft.nest.dtype(accesses.write.buffer).bytes() as i64;
    let lanes = goal.target.lanes(bytes);
    let is_long = i128::from(along.extent) >= 2 * PARALLEL_WORK;
    if i128::from(workers) <= lines || !is_long {
        return false;
    }
    let whole = RUNS * lanes;
    let pieces = workers.saturating_mul(PIECES).min(along.extent);
    let piece = ((along.extent - 1) / pieces / whole + 1) * whole;
    let outer = format!("{}.0", along.name);
    if !draft.step(stage, Split::new(&along.name, &[piece]))
        || !draft.step(stage, Segment { target: outer.clone() })
    {
        return false;
    }
    let steps = Accesses::of(&draft.nest, stage);
    let steps = steps.and_then(|accesses| accesses.of_role(Role::Scan).next().cloned());
    innermost(draft, stage, &[&outer], &[])
        && steps.is_some_and(|along| in_lanes(draft, stage, &along, lanes))
        && totals(draft, &format!("{stage}.total"), along, whole.min(MAX_LANES))
}

/// Computes the totals of pieces, with `partial` partial results each.
fn totals(draft: &mut ScheduleState, stage: &str, along: &Axis, partial: i64) -> bool {
    let outer = format!("{}.0", along.name);
    let terms = format!("{}.1", along.name);
    let lanes = format!("{terms}.1");
    let partials = format!("{stage}.rf");
    if !innermost(draft, stage, &[&outer], &[&terms]) {
        return false;
    }
    let at = draft.loop_names(stage).into_iter().rev().nth(1).unwrap_or_else(|| outer.clone());
    draft.step(stage, Split::new(&terms, &[partial]))
        && draft.step(stage, Rfactor { target: lanes.clone(), at })
        && draft.step(&partials, Vectorize { target: lanes.clone() })
        && draft.step(stage, Vectorize { target: lanes })
        && draft.step(stage, Parallel { target: outer })
}

/// Vectorizes the steps of an associative recurrence.
fn in_lanes(draft: &mut ScheduleState, stage: &str, along: &Axis, lanes: i64) -> bool {
    let lanes = lanes.min(along.extent);
    let runs = match is_small(draft, stage) {
        true => RUNS.min(along.extent / lanes),
        false => 1,
    };
    let parts: &[i64] = if runs > 1 { &[runs, lanes] } else { &[lanes] };
    let part = |number: usize| format!("{}.{number}", along.name);
    let inner: Vec<String> = (1..=parts.len()).map(part).collect();
    let Some((vector, unrolled)) = inner.split_last() else { return false };
    draft.step(stage, Split::new(&along.name, parts).tail(Tail::Peel))
        && innermost(draft, stage, &[], &inner.iter().collect::<Vec<_>>())
        && draft.step(stage, Vectorize { target: vector.clone() })
        && unrolled.iter().all(|target| draft.step(stage, Unroll { target: target.clone() }))
}

/// Whether steps of a stage may be unrolled.
fn is_small(draft: &ScheduleState, stage: &str) -> bool {
    let mut parts = 0;
    let store = store_of(&draft.nest, stage);
    store.into_iter().for_each(|store| store.value.walk(&mut |_| parts += 1));
    parts <= MOST_PARTS
}

/// Interleaves several lines, each with a few steps of the recurrence in turn.
fn interleaved(
    draft: &mut ScheduleState,
    stage: &str,
    lines: Option<&Axis>,
    along: Option<&Axis>,
    steps: i64,
) -> bool {
    let is_small = is_small(draft, stage);
    let mut inner = Vec::new();
    if let Some(lines) = lines {
        let split = Split::new(&lines.name, &[LINES.min(lines.extent)]).tail(Tail::Peel);
        if !draft.step(stage, split) {
            return false;
        }
        inner.push(format!("{}.1", lines.name));
    }
    if let Some(along) = along.filter(|along| is_small && along.extent >= 2 * steps && steps > 1) {
        if !draft.step(stage, Split::new(&along.name, &[steps]).tail(Tail::Peel)) {
            return false;
        }
        inner.push(format!("{}.1", along.name));
    }
    innermost(draft, stage, &[], &inner.iter().collect::<Vec<_>>())
        && inner.into_iter().all(|target| draft.step(stage, Unroll { target }))
}

fn in_rows(draft: &mut ScheduleState, stage: &str, vector: &Axis, lanes: i64) -> bool {
    let inner = format!("{}.1", vector.name);
    draft.step(stage, Split::new(&vector.name, &[lanes]).tail(Tail::Peel))
        && innermost(draft, stage, &[], &[&inner])
        && draft.step(stage, Vectorize { target: inner })
}

fn in_blocks(draft: &mut ScheduleState, stage: &str, vector: &Axis, lanes: i64) -> bool {
    let part = |number: usize| format!("{}.{number}", vector.name);
    draft.step(stage, Split::new(&vector.name, &[VECTORS, lanes]).tail(Tail::Peel))
        && innermost(draft, stage, &[&part(0)], &[&part(1), &part(2)])
        && draft.step(stage, Vectorize { target: part(2) })
}

/// Moves some loops of a stage to the outside and others to the inside.
fn innermost(draft: &mut ScheduleState, stage: &str, first: &[&String], last: &[&String]) -> bool {
    let all = draft.loop_names(stage);
    let others = all.iter().filter(|name| !first.contains(name) && !last.contains(name));
    let all = first.iter().copied().chain(others).chain(last.iter().copied());
    order(draft, stage, all.cloned().collect())
}
