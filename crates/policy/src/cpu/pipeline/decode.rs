//! The plan of a pipeline-search state.

use tensorwright_pipeline::{Decision, LevelKind, State, Tiling};
use tensorwright_plan::levels::cpu::{CACHE, PARALLEL, TILE};
use tensorwright_plan::{
    Emitter, Level, Levels, LoopKind, LoopRef, Open, Placement, PlannedLoop, StageId, Stages,
};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::stages;
use tensorwright_schedule::{ScheduleError, ScheduleState};
use tensorwright_space::Rejection;

use super::Pipeline;
use crate::cpu::loops::row::Row;
use crate::cpu::rules::complete_stages;
use crate::pipelines::begin;

/// The levels of a plan for those of a search that have loops.
const LEVELS: [Level; 2] = [PARALLEL, CACHE];

/// A stage with its decisions.
struct Decided<'a> {
    /// Its number in the graph.
    number: usize,
    stage: StageId,
    tiling: &'a Tiling,
    /// The stage and the level of the loop that it is computed in.
    host: Option<(usize, usize)>,
}

/// Decodes a state, with at most `most_vectors` vectors per step.
///
/// # Errors
/// If a step is refused.
pub(super) fn decode(
    of: &Pipeline,
    state: &State,
    most_vectors: i64,
) -> Result<ScheduleState, Rejection> {
    let (mut draft, names) = begin(&of.nest, &of.dag, state)?;
    let found = Stages::of(&draft.nest, names.iter().map(String::as_str));
    let decided = |number: usize| {
        let (tiling, host) = match state.decision(number)? {
            Decision::Root(tiling) => (tiling.as_deref()?, None),
            Decision::At { consumer, level, tiling } => (&**tiling, Some((*consumer, *level))),
            Decision::Inline => return None,
        };
        Some(Decided { number, stage: found.named(&names[number])?.0, tiling, host })
    };
    let all: Vec<Decided<'_>> = (0..names.len()).filter_map(decided).collect();
    let refused = |error: ScheduleError| Rejection {
        rule: error.keyword().unwrap_or("compute_at"),
        reason: error.to_string(),
    };
    let mut emitter = Emitter::new(&mut draft, &found, Levels::CPU);
    // Readers come first.
    for own in all.iter().rev() {
        let placement = match own.host {
            None => Placement::Root,
            Some((consumer, level)) => {
                let stage = found.named(&names[consumer]).map_or(own.stage, |(stage, _)| stage);
                let level = LEVELS.get(level).copied().unwrap_or(TILE);
                Placement::At(LoopRef { stage, level })
            }
        };
        emitter.place(own.stage, placement, Vec::new()).map_err(refused)?;
        let outer = emitter.open(own.stage).map(|open| outer(of, own, &open));
        emitter.cut(own.stage, outer.unwrap_or_default()).map_err(refused)?;
    }
    let in_vectors = |error: ScheduleError| Rejection { rule: "vector", reason: error.to_string() };
    for own in &all {
        let vectors = (body(own.tiling) / of.goal.target.lanes(4)).clamp(1, most_vectors);
        let at = LoopRef { stage: own.stage, level: TILE };
        let row = Row { vectors, is_short: own.host.is_some(), at };
        let propose = |nest: &_, open: &_| row.tiling(nest, open, &of.goal);
        emitter.tile_by(own.stage, propose).map_err(in_vectors)?;
    }
    emitter.finish().map_err(in_vectors)?;
    // Stages of partial results and of accumulators have derived names.
    let is_ours = |name: &String| {
        let is_of = |own: &Decided<'_>| {
            let suffix = name.strip_prefix(names[own.number].as_str());
            matches!(suffix, Some("" | ".rf")) || own.host.is_some() && suffix == Some(".tile")
        };
        all.iter().any(is_of)
    };
    let rest: Vec<String> = stages(&draft.nest).into_iter().filter(|name| !is_ours(name)).collect();
    complete_stages(&mut draft, &rest, &of.goal);
    Ok(draft)
}

/// The elements of a row per step.
fn body(tiling: &Tiling) -> i64 {
    tiling.tiles.last().and_then(|tile| tile.last()).copied().unwrap_or(1)
}

/// The loops of a placed stage in which others may be computed: those of each level enclose those
/// of the next. The outermost tiles are parallel.
fn outer(of: &Pipeline, own: &Decided<'_>, open: &Open) -> Vec<PlannedLoop> {
    let Decided { number, tiling, host, .. } = own;
    let spatial = || open.axes().iter().filter(|axis| axis.role == Role::Spatial);
    let is_large = of.dag.stages[*number].points() >= of.levels.worth_sharing as f64;
    let is_shared = of.goal.workers > 1 && is_large && host.is_none();
    let mut around: Vec<i64> = spatial().map(|axis| axis.extent).collect();
    let mut loops: Vec<PlannedLoop> = Vec::new();
    for (level, name) in LEVELS.into_iter().enumerate().skip(tiling.first) {
        let is_parallel = of.levels.list.get(level).map(|l| &l.kind) == Some(&LevelKind::Parallel);
        let mut trips = Vec::new();
        for (dimension, axis) in spatial().enumerate() {
            let size = tiling.tile(level).and_then(|tile| tile.get(dimension)).copied();
            let extent = around[dimension];
            let size = size.unwrap_or(extent).max(1);
            if size >= extent {
                continue;
            }
            around[dimension] = size;
            let mut own = PlannedLoop::new(open.axis(axis), size, name);
            // With few tiles in one dimension, those of the next are parallel, too.
            if is_shared && is_parallel && (trips.is_empty() || is_few(&trips, of)) {
                own.kind = LoopKind::Parallel;
            }
            trips.push((extent + size - 1) / size);
            loops.push(own);
        }
    }
    loops
}

/// Whether the only loop so far has few iterations for all workers.
fn is_few(trips: &[i64], of: &Pipeline) -> bool {
    matches!(trips, [only] if *only < 4 * of.goal.workers)
}
