//! Recurrences: elements are computed in order along one loop, and all other loops are free.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::Draft;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{
    MAX_LANES, Parallel, Rfactor, Segment, Split, Tail, Unroll, Vectorize, loops_of,
};

use super::share::inner_work;
use crate::cpu::work::PARALLEL_WORK;
use crate::stages::steps::order;

/// How many vectors of neighbours go along the recurrence together if workers share the others.
pub(super) const VECTORS: i64 = 8;

/// How many lines go along the recurrence together where their elements are apart: as many as hide the time that a
/// result takes until the next one can use it, and few enough for lines a power of two apart to have room in a cache.
const LINES: i64 = 4;

/// The bytes of a line that are computed before the next line has its turn: those that come from memory together. In
/// between, the last result stays in a register.
const STEP_BYTES: i64 = 64;

/// How many vectors of steps are written out: the last result stays in a register from one to the next.
const RUNS: i64 = 4;

/// How many pieces of a line each worker gets where there are fewer lines than workers.
const PIECES: i64 = 8;

/// The most parts of a value for which steps and lines are written out.
const MOST_PARTS: usize = 48;

/// Vectors of results that are next to each other. If the recurrence goes along them, lanes are its steps where each
/// combines the element before with a term in any order; otherwise it goes some steps of a line, then of the next. Where its loop
/// is the outermost and there is work for several workers, blocks of results go around it. Where there are fewer lines than workers,
/// they share pieces of lines; where these end is a stage of its own, which is still to be scheduled.
pub(super) fn schedule(draft: &mut Draft, stage: &str, goal: &Goal<Cpu>) -> Vec<String> {
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

/// Pieces of a long line for each worker, in vectors of steps.
fn in_pieces(draft: &mut Draft, stage: &str, along: &Axis, goal: &Goal<Cpu>) -> bool {
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

/// What pieces come to, in so many partial results each.
fn totals(draft: &mut Draft, stage: &str, along: &Axis, partial: i64) -> bool {
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

/// Vectors of steps of the recurrence, if it is one of which terms may be combined in any order.
fn in_lanes(draft: &mut Draft, stage: &str, along: &Axis, lanes: i64) -> bool {
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

/// Whether steps of a stage may be written out.
fn is_small(draft: &Draft, stage: &str) -> bool {
    let mut parts = 0;
    let store = store_of(&draft.nest, stage);
    store.into_iter().for_each(|store| store.value.walk(&mut |_| parts += 1));
    parts <= MOST_PARTS
}

/// Several lines at a time, each with the next steps of the recurrence in turn.
fn interleaved(
    draft: &mut Draft,
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
