//! Decodes pipeline-search states to schedules.

use tensorwright_pipeline::{Decision, LevelKind, State, Tiling};
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::primitives::{ComputeAt, Fuse, Parallel, loops_of, stages};
use tensorwright_schedule::{ScheduleError, ScheduleState};
use tensorwright_space::Rejection;

use crate::cpu::rows::Row;
use crate::cpu::rules::complete_stages;

use super::Pipeline;
use super::tiled_loops::{TiledLoops, cut};
use crate::pipelines::begin;
use crate::stages::steps::apply;

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
    let count = names.len();
    // Compute location first, then loop splits, then the stages inside: readers come first.
    let mut hosts: Vec<TiledLoops> = vec![TiledLoops::default(); count];
    let mut tiled: Vec<(usize, &Tiling)> = Vec::new();
    for stage in (0..count).rev() {
        let tiling = match state.decision(stage) {
            Some(Decision::Root(Some(tiling))) => tiling,
            Some(Decision::At { consumer, level, tiling }) => {
                let Some(at) = hosts[*consumer].loop_of(*level).cloned() else {
                    let level = of.levels.list.get(*level).map_or("", |level| level.name);
                    let reason = format!(
                        "`{}` has no loop of level `{level}` for `{}`",
                        names[*consumer], names[stage]
                    );
                    return Err(Rejection { rule: "compute_at", reason });
                };
                let consumer = names[*consumer].clone();
                apply(&mut draft, &names[stage], ComputeAt { consumer, at })?;
                tiling
            }
            _ => continue,
        };
        hosts[stage] = cut(&mut draft, &names[stage], tiling, &of.levels)?;
        tiled.push((stage, tiling));
    }
    for (stage, tiling) in tiled.iter().rev() {
        let at_a_time = (body(tiling) / of.goal.target.lanes(4)).clamp(1, most_vectors);
        let is_short = matches!(state.decision(*stage), Some(Decision::At { .. }));
        vectors(&mut draft, of, &names[*stage], (at_a_time, is_short), &hosts[*stage])?;
    }
    for (stage, tiling) in &tiled {
        if matches!(state.decision(*stage), Some(Decision::Root(_))) {
            share(&mut draft, of, (*stage, &names[*stage]), tiling, &hosts[*stage])?;
        }
    }
    let is_ours = |name: &String| tiled.iter().any(|(stage, _)| names[*stage] == *name);
    let mut rest: Vec<String> = stages(&draft.nest);
    // Stages of partial results have derived names.
    rest.retain(|name| !is_ours(name) && !is_ours(&settled(name)));
    complete_stages(&mut draft, &rest, &of.goal);
    Ok(draft)
}

/// The stage that a stage of partial results belongs to.
fn settled(name: &str) -> String {
    name.strip_suffix(".rf").unwrap_or(name).to_owned()
}

/// The elements of a row per step.
fn body(tiling: &Tiling) -> i64 {
    tiling.tiles.last().and_then(|tile| tile.last()).copied().unwrap_or(1)
}

/// Vectorizes the rows of a stage, several vectors per step.
fn vectors(
    draft: &mut ScheduleState,
    of: &Pipeline,
    stage: &str,
    (vectors, is_short): (i64, bool),
    hosts: &TiledLoops,
) -> Result<(), Rejection> {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Ok(()) };
    let Some(row) = accesses.of_role(Role::Spatial).last().map(|axis| axis.name.clone()) else {
        return Ok(());
    };
    let (depth, goal) = (hosts.depth(), &of.goal);
    let mut row = Row { draft, stage, at: &row, depth, vectors, is_short, goal };
    let refused = |error: ScheduleError| Rejection { rule: "vector", reason: error.to_string() };
    row.schedule().map_err(refused)
}

/// Parallelizes the outermost tiles of a stage.
fn share(
    draft: &mut ScheduleState,
    of: &Pipeline,
    (number, stage): (usize, &str),
    tiling: &Tiling,
    hosts: &TiledLoops,
) -> Result<(), Rejection> {
    let is_small = of.dag.stages[number].points() < of.levels.worth_sharing as f64;
    let parallel = of.levels.list.iter().position(|level| level.kind == LevelKind::Parallel);
    let loops = parallel.map_or(&[][..], |level| hosts.loops(level));
    let [first, rest @ ..] = loops else { return Ok(()) };
    if of.goal.workers < 2 || is_small || parallel.is_none_or(|level| level < tiling.first) {
        return Ok(());
    }
    let extent = loops_of(&draft.nest, stage)
        .iter()
        .find(|l| draft.nest.var_name(l.var) == first)
        .map_or(1, |l| l.extent);
    let mut target = first.clone();
    // With few tiles in one dimension, those of the next are parallel, too.
    if let Some(second) = rest.first().filter(|_| extent < 4 * of.goal.workers) {
        let name = format!("{first}_{second}");
        let fuse = Fuse { outer: first.clone(), inner: second.clone(), name: Some(name.clone()) };
        if draft.step(stage, fuse) {
            target = name;
        }
    }
    apply(draft, stage, Parallel { target })
}
