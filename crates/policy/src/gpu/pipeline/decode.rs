//! Decodes pipeline-search states to schedules.

use tensorwright_pipeline::{Decision, State};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::primitives::{ComputeAt, stages};
use tensorwright_space::Rejection;

use super::Pipeline;
use super::turns::{in_registers, in_turns};
use crate::gpu::decode::{self, Levels};
use crate::gpu::group::Group;
use crate::gpu::groups::{describe, groups};
use crate::gpu::rules;
use crate::gpu::tiling::Tiling;
use crate::pipelines::begin;
use crate::stages::steps::apply;

/// The levels of the search.
const BLOCKS: usize = 0;
const THREADS: usize = 1;

/// A stage at the root level: a launch.
struct Root {
    group: Group,
    tiling: Tiling,
    loops: Levels,
}

/// The loops of a stage that others may be computed in.
#[derive(Default)]
struct StageLoops {
    /// The index of the root whose blocks contain them.
    root: usize,
    /// The innermost block loop, of a root.
    block: Option<String>,
    /// The innermost thread loop, of a root.
    thread: Option<String>,
}

/// Decodes a state.
///
/// # Errors
/// If a step is refused.
pub(super) fn decode(of: &Pipeline, state: &State) -> Result<ScheduleState, Rejection> {
    let (mut draft, names) = begin(&of.nest, &of.dag, state)?;
    let count = names.len();
    // Compute location first, then loop splits, then the stages inside: readers come first.
    let mut roots: Vec<Root> = Vec::new();
    let mut in_blocks: Vec<(usize, usize)> = Vec::new();
    let mut hosts: Vec<Option<StageLoops>> = (0..count).map(|_| None).collect();
    for stage in (0..count).rev() {
        match state.decision(stage) {
            Some(Decision::Root(Some(tiles))) => {
                let holds = (0..stage).any(|of| {
                    let decision = state.decision(of);
                    matches!(decision, Some(Decision::At { consumer, level: THREADS, .. }) if *consumer == stage)
                });
                let Some(root) = open(&mut draft, &names[stage], tiles, holds)? else { continue };
                let last = |loops: &[String]| loops.last().cloned();
                let (block, thread) = (last(&root.loops.blocks), last(&root.loops.threads));
                hosts[stage] = Some(StageLoops { root: roots.len(), block, thread });
                roots.push(root);
            }
            Some(Decision::At { consumer, level, .. }) => {
                let refused = || refused(of, &names[stage], &names[*consumer], *level);
                let host = hosts[*consumer].as_ref().ok_or_else(refused)?;
                let at = if *level == BLOCKS { &host.block } else { &host.thread };
                let at = at.clone().ok_or_else(refused)?;
                let root = host.root;
                let consumer = names[*consumer].clone();
                apply(&mut draft, &names[stage], ComputeAt { consumer, at })?;
                match *level {
                    BLOCKS => in_blocks.push((stage, root)),
                    _ => in_registers(&mut draft, &names[stage])?,
                }
                hosts[stage] = Some(StageLoops { root, block: None, thread: None });
            }
            _ => {}
        }
    }
    // Distributing loops over threads pads them; stages placed later would see the padded extents.
    for (stage, root) in in_blocks {
        in_turns(&mut draft, &names[stage], &roots[root].tiling)?;
    }
    for Root { group, tiling, loops } in &roots {
        decode::close(&mut draft, group, tiling, loops)?;
    }
    let is_placed = |name: &str| {
        let mut placed = names.iter().zip(&hosts).filter(|(_, host)| host.is_some());
        placed.any(|(ours, _)| {
            name == ours
                || name.strip_prefix(ours.as_str()).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    rest(&mut draft, of, is_placed);
    Ok(draft)
}

/// Schedules the stages that the state leaves open.
fn rest(draft: &mut ScheduleState, of: &Pipeline, is_placed: impl Fn(&str) -> bool) {
    if stages(&draft.nest).iter().all(|stage| is_placed(stage)) {
        return;
    }
    let left = groups(draft, &crate::SpaceOptions::default());
    let is_left = |group: &&Group| !group.stages().any(|stage| is_placed(stage));
    rules::finish(draft, left.tiled.iter().filter(is_left), &of.goal);
    let alone = left.tiled.iter().filter(|group| !is_left(group));
    // The reduction of an epilogue that already has threads gets its own.
    let alone = alone.flat_map(Group::stages);
    let fixed = left.fixed.iter().chain(alone).filter(|stage| !is_placed(stage));
    fixed.for_each(|stage| rules::lines(draft, stage));
}

fn refused(of: &Pipeline, stage: &str, consumer: &str, level: usize) -> Rejection {
    let level = of.levels.list.get(level).map_or("", |level| level.name);
    let reason = format!("`{consumer}` has no loop of level `{level}` for `{stage}`");
    Rejection { rule: "compute_at", reason }
}

/// Creates the blocks and threads of a root stage; `None` if it has no spatial loops. `holds` tells
/// whether its threads hold other stages in registers.
fn open(
    draft: &mut ScheduleState,
    stage: &str,
    tiles: &tensorwright_pipeline::Tiling,
    holds: bool,
) -> Result<Option<Root>, Rejection> {
    let options = crate::SpaceOptions::default();
    let Some(group) = describe(&draft.nest, stage, None, &options) else { return Ok(None) };
    let mut tiling = Tiling::plain(&group);
    let of = |level: usize, axis: usize| {
        tiles.tile(level).and_then(|tile| tile.get(axis)).copied().unwrap_or(1).max(1)
    };
    for axis in 0..group.spatial.len() {
        let (block, thread) = (of(BLOCKS, axis), of(THREADS, axis));
        let threads = (block + thread - 1) / thread;
        // Adjacent threads compute adjacent elements, unless a thread would then hold too much for
        // all of its results.
        let (apart, inner) = if axis == tiling.x && !holds { (thread, 1) } else { (1, thread) };
        tiling.spatial[axis] = vec![1, apart, threads, inner];
    }
    let loops = decode::open(draft, &group, &tiling)?;
    Ok(Some(Root { group, tiling, loops }))
}
