//! Pruning of unpromising states (section 4.6).

use crate::dag::Stage;
use crate::levels::{Level, LevelKind};
use crate::state::{Decision, Layout, State, Tiling};

use super::Space;

/// The maximum allocation relative to a level's capacity: caches also hold streamed data.
const ALLOCATIONS: f64 = 1.5;

/// Whether a decision about a stage makes a state unpromising: excessive recomputation, allocations
/// that exceed their level, too little parallelism, or separate computation of results that share
/// operands.
pub(crate) fn is_pruned(space: &Space<'_>, state: &State, stage: usize) -> bool {
    let of = &space.dag.stages[stage];
    match state.decision(stage) {
        // Tiles of a stage inside another do not affect these criteria.
        Some(Decision::At { level, .. }) => {
            let layout = Layout::new(space.dag, state);
            let members = layout.group_of(stage).map(|group| layout.members(group));
            let Some(members) = members else { return true };
            let Some(member) = members.iter().find(|member| member.stage == stage) else {
                return true;
            };
            let computed: f64 = member.region.iter().map(|extent| *extent as f64).product();
            if computed * member.executions > space.recompute * of.points() {
                return true;
            }
            if of.together.iter().any(|d| member.region[*d] < of.spatial[*d]) {
                return true;
            }
            let bytes = |member: &&crate::state::Member| {
                let elements: f64 = member.region.iter().map(|extent| *extent as f64).product();
                elements * space.dag.stages[member.stage].element_bytes as f64
            };
            let beside = members.iter().filter(|other| other.host == member.host);
            let held: f64 = beside.map(|member| bytes(&member)).sum();
            let room = space.levels.list.get(*level).map_or(0, |level| level.bytes);
            held > ALLOCATIONS * room as f64
        }
        Some(Decision::Root(Some(tiling))) => {
            let parallel = |level: &usize| {
                space.levels.list.get(*level).is_some_and(|l| l.kind == LevelKind::Parallel)
            };
            // The outermost of them occupies the target; the inner ones share its memory.
            let levels = (tiling.first..space.levels.count()).find(parallel);
            let levels = levels.into_iter();
            let trips = levels.flat_map(|level| tiling.trips(level, &of.spatial));
            let shared = trips.fold(1i64, i64::saturating_mul);
            let first = tiling.tiles.first();
            let is_apart = |d: &usize| first.is_some_and(|tile| tile[*d] < of.spatial[*d]);
            if of.together.iter().any(is_apart) {
                return true;
            }
            if !(tiling.first..space.levels.count()).all(|level| has_room(space, tiling, level, of))
            {
                return true;
            }
            of.points() >= space.levels.worth_sharing as f64 && shared < space.levels.least_parallel
        }
        // `may_inline` limits recomputation by inlining.
        Some(Decision::Inline | Decision::Root(None)) | None => false,
    }
}

/// Whether the iterations of a level are within its limits.
fn has_room(space: &Space<'_>, tiling: &Tiling, level: usize, of: &Stage) -> bool {
    let Some(Level { iterations: (fewest, most), .. }) = space.levels.list.get(level) else {
        return true;
    };
    let trips = tiling.trips(level, &of.spatial);
    let trips = trips.into_iter().fold(1i64, i64::saturating_mul);
    // A stage may have fewer elements than the minimum.
    trips <= *most && (trips >= *fewest || of.points() < 2.0 * *fewest as f64)
}
