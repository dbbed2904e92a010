//! Row-wise fusion: stages that iterate over the same rows.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{BufferId, Owner, Role};
use tensorwright_schedule::placement::{epilogue_of, reader_names, store_of};
use tensorwright_schedule::primitives::{ComputeAt, stages};

use super::kinds::{is_in_order, is_written_out};
use super::sibling_fusion::{self, Sibling};

/// Larger programs are skipped: every attempt copies the nest.
const MOST_STAGES: usize = 128;

/// Stages that can be computed together row by row without recomputation.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// The last stage, whose row loops enclose all others.
    pub(crate) root: String,
    /// The loop of the root that the others are computed in.
    pub(crate) row: String,
    /// The number of loops of the root up to `row`, inclusive.
    pub(crate) depth: usize,
    /// The product of their extents.
    pub(crate) rows: i64,
    /// The stages, in the order of the program.
    pub(crate) stages: Vec<String>,
    /// The stages that share the row loops with the root as siblings.
    pub(crate) siblings: Vec<Sibling>,
    /// The bytes of the intermediate rows.
    pub(crate) bytes: i64,
    /// The draft after fusion into that loop.
    pub(crate) fused: ScheduleState,
}

impl Rows {
    /// Whether a stage is part of this.
    pub(crate) fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|own| own == stage)
    }
}

/// Resource limits of row-wise fusion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The maximum bytes of intermediate rows.
    pub(crate) room: i64,
    /// The number of workers that share the rows; `None` disables sibling fusion.
    pub(crate) sibling_workers: Option<i64>,
}

/// Finds the unscheduled stages that iterate over the same rows. No stage is in two results.
pub(crate) fn find(draft: &ScheduleState, limits: Limits) -> Vec<Rows> {
    let all = stages(&draft.nest);
    if all.len() > MOST_STAGES {
        return Vec::new();
    }
    let mut taken: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for root in all.iter().rev() {
        if taken.contains(root) || !may_go_by_rows(draft, root) {
            continue;
        }
        if let Some(rows) = rows(draft, root, &taken, limits) {
            taken.extend(rows.stages.iter().cloned());
            found.push(rows);
        }
    }
    found.reverse();
    found
}

/// The rows of the stages that end with a root: the loop that fuses the most stages and, among
/// these, has the shortest rows.
fn rows(draft: &ScheduleState, root: &str, taken: &[String], limits: Limits) -> Option<Rows> {
    let accesses = Accesses::of(&draft.nest, root)?;
    let spatial: Vec<&Axis> = accesses.of_role(Role::Spatial).collect();
    let has_terms = accesses.of_role(Role::Reduce).next().is_some();
    // A row of an element-wise stage has at least one loop.
    let most = if has_terms { spatial.len() } else { spatial.len().saturating_sub(1) };
    let mut best: Option<Rows> = None;
    for depth in (1..=most).rev() {
        let rows: i64 = spatial[..depth].iter().map(|axis| axis.extent).product();
        let row = spatial[depth - 1].name.clone();
        let mut fused = draft.clone();
        let siblings = limits.sibling_workers.map_or_else(Vec::new, |workers| {
            let may_join = |stage: &str| {
                !taken.iter().any(|other| other == stage) && may_go_by_rows(draft, stage)
            };
            sibling_fusion::join(&mut fused, root, &spatial[..depth], workers, may_join)
        });
        let held = siblings.iter().map(|stage| stage.bytes).fold(0i64, i64::saturating_add);
        let room = limits.room.saturating_sub(held);
        let together = FusionLoop { root, row: &row, rows, siblings: &siblings };
        let Some((stages, bytes, fused)) = stages_of(draft, fused, together, taken, room) else {
            continue;
        };
        if best.as_ref().is_none_or(|best| best.stages.len() < stages.len()) {
            let root = root.to_owned();
            best = Some(Rows { root, row, depth, rows, stages, siblings, bytes, fused });
        }
    }
    best
}

/// A loop of a root that other stages may be fused into.
struct FusionLoop<'a> {
    root: &'a str,
    /// The loop.
    row: &'a str,
    /// Its iterations times those of the enclosing loops.
    rows: i64,
    /// The siblings that share it already.
    siblings: &'a [Sibling],
}

/// The stages that can be fused into a loop of the root without recomputation, and the root; `None`
/// if fusion saves nothing.
fn stages_of(
    draft: &ScheduleState,
    mut fused: ScheduleState,
    FusionLoop { root, row, rows, siblings }: FusionLoop<'_>,
    taken: &[String],
    room: i64,
) -> Option<(Vec<String>, i64, ScheduleState)> {
    let mut inside: Vec<String> = vec![root.to_owned()];
    inside.extend(siblings.iter().map(|stage| stage.stage.clone()));
    let mut bytes = 0i64;
    for stage in stages(&draft.nest).iter().rev() {
        if inside.contains(stage) {
            continue;
        }
        let Some(store) = store_of(&draft.nest, stage) else { continue };
        let buffer = store.buffer;
        let readers = reader_names(&fused.nest, buffer);
        let is_ours = !readers.is_empty() && readers.iter().all(|reader| inside.contains(reader));
        if !is_ours || taken.contains(stage) || !may_go_by_rows(draft, stage) {
            continue;
        }
        let mut trial = fused.clone();
        let at = ComputeAt { consumer: root.to_owned(), at: row.to_owned() };
        if !trial.step(stage, at) {
            continue;
        }
        // Outputs of the program stay in memory, and nothing is recomputed.
        if draft.nest.buffer(buffer).owner != Owner::Output {
            let (whole, row) = (draft.nest.buffer(buffer), trial.nest.buffer(buffer));
            if row.elements().saturating_mul(rows) != whole.elements() {
                continue;
            }
            bytes = row.bytes().saturating_add(bytes);
        }
        inside.push(stage.clone());
        fused = trial;
    }
    if bytes > room || !shares_rows(&fused, &inside) {
        return None;
    }
    // A reduction is scheduled with the stage that reads it in place.
    let reduction = |stage: &String| epilogue_of(&draft.nest, stage);
    if inside.iter().filter_map(reduction).any(|reduction| !inside.contains(&reduction)) {
        return None;
    }
    let all = stages(&draft.nest);
    inside.sort_by_key(|stage| all.iter().position(|other| other == stage));
    Some((inside, bytes, fused))
}

/// The product of the extents of some loops, saturating.
pub(crate) fn iterations<'a>(axes: impl IntoIterator<Item = &'a Axis>) -> i64 {
    axes.into_iter().fold(1, |product, axis| product.saturating_mul(axis.extent))
}

/// Whether a stage loses nothing if it is computed row by row: no operand is shared by a tile of
/// several rows and columns, and no rule unrolls it.
fn may_go_by_rows(draft: &ScheduleState, stage: &str) -> bool {
    let Some(store) = store_of(&draft.nest, stage) else { return false };
    let owner = draft.nest.buffer(store.buffer).owner;
    let is_made = matches!(owner, Owner::Intermediate | Owner::Output);
    if !is_made || is_written_out(draft, stage) || is_in_order(draft, stage) {
        return false;
    }
    // A product in an epilogue is computed inside its tiles.
    let reduction = epilogue_of(&draft.nest, stage);
    let mut own = [Some(stage.to_owned()), reduction].into_iter().flatten();
    own.all(|stage| Accesses::of(&draft.nest, &stage).is_some_and(|found| !is_product(&found)))
}

/// Whether a reduction is a matrix product or a multi-channel convolution: along some spatial loop
/// one operand moves and the other does not, and vice versa.
pub(crate) fn is_product(accesses: &Accesses) -> bool {
    let spatial: Vec<&Axis> = accesses.of_role(Role::Spatial).collect();
    let has_terms = accesses.of_role(Role::Reduce).next().is_some();
    let stands = |read: &Access, axis: &Axis| read.stride(axis) == Some(0);
    let shared = |a: &Access, b: &Access| {
        let apart = |a, b| spatial.iter().any(|axis| stands(a, axis) && !stands(b, axis));
        apart(a, b) && apart(b, a)
    };
    let mut pairs = accesses.reads.iter().flat_map(|a| accesses.reads.iter().map(move |b| (a, b)));
    has_terms && pairs.any(|(a, b)| shared(a, b))
}

/// Whether several stages read or write the same rows: otherwise fusion saves nothing.
fn shares_rows(fused: &ScheduleState, inside: &[String]) -> bool {
    let mut touched: Vec<BufferId> = Vec::new();
    for stage in inside {
        let Some(accesses) = Accesses::of(&fused.nest, stage) else { continue };
        let is_row = |access: &&Access| {
            accesses.axes.iter().any(|axis| axis.extent > 1 && access.stride(axis) == Some(1))
        };
        let all = accesses.reads.iter().chain([&accesses.write]);
        let mut own: Vec<BufferId> = all.filter(is_row).map(|access| access.buffer).collect();
        own.sort_unstable();
        own.dedup();
        if own.iter().any(|buffer| touched.contains(buffer)) {
            return true;
        }
        touched.extend(own);
    }
    false
}
