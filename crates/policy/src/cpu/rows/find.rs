//! Which stages go over the same rows.

use tensorwright_schedule::Draft;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{BufferId, Owner, Role};
use tensorwright_schedule::placement::{epilogue_of, reader_names, store_of};
use tensorwright_schedule::primitives::{ComputeAt, stages};
use tensorwright_target::{Cpu, Goal};

use super::steps::{lane_axis, most_vectors};
use super::{Chain, RowStage};
use crate::stages::kinds::{is_in_order, is_written_out};

/// Programs with more stages are not looked at: every stage that is tried copies the nest.
const MOST_STAGES: usize = 128;

/// The most terms that are written out for each vector of results.
pub(crate) const MOST_TERMS: i64 = 25;

/// The chains of a program whose stages are not scheduled yet. No stage is in two of them.
pub(crate) fn find(draft: &Draft, goal: &Goal<Cpu>) -> Vec<Chain> {
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
        if let Some(chain) = chain(draft, root, &taken, goal) {
            taken.extend(chain.stages.iter().map(|stage| stage.name.clone()));
            found.push(chain);
        }
    }
    found.reverse();
    found
}

/// The chain that ends with a stage: in the loops that hold the most stages and, of these, the shortest rows.
fn chain(draft: &Draft, root: &str, taken: &[String], goal: &Goal<Cpu>) -> Option<Chain> {
    let accesses = Accesses::of(&draft.nest, root)?;
    let spatial: Vec<&Axis> = accesses.of_role(Role::Spatial).collect();
    let has_terms = accesses.of_role(Role::Reduce).next().is_some();
    // A row of an element-wise stage has at least a loop.
    let most = if has_terms { spatial.len() } else { spatial.len().saturating_sub(1) };
    let mut best: Option<Chain> = None;
    for depth in (1..=most).rev() {
        let rows: i64 = spatial[..depth].iter().map(|axis| axis.extent).product();
        let row = spatial[depth - 1].name.clone();
        let Some(stages) = stages_of(draft, root, (&row, rows, depth), taken, goal) else {
            continue;
        };
        if best.as_ref().is_none_or(|best| best.stages.len() < stages.len()) {
            let (root, parameters, knobs) = (root.to_owned(), 0..0, Vec::new());
            let work = iterations(&accesses.axes);
            best = Some(Chain { root, row, rows, work, stages, parameters, knobs });
        }
    }
    best
}

/// The stages that can be computed in a loop of the root without anything being computed twice, and the root;
/// `None` if that saves nothing.
fn stages_of(
    draft: &Draft,
    root: &str,
    (row, rows, depth): (&str, i64, usize),
    taken: &[String],
    goal: &Goal<Cpu>,
) -> Option<Vec<RowStage>> {
    let mut inside: Vec<String> = vec![root.to_owned()];
    let mut fused = draft.clone();
    let mut bytes = 0;
    for stage in stages(&draft.nest).iter().rev() {
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
        // A result of the program stays where it is, and nothing of it is computed twice.
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
    if bytes > goal.target.caches().l2 / 2 || !shares_rows(&fused, &inside) {
        return None;
    }
    // A reduction is scheduled with the stage that reads it in place.
    let reduction = |stage: &String| epilogue_of(&draft.nest, stage);
    if inside.iter().filter_map(reduction).any(|reduction| !inside.contains(&reduction)) {
        return None;
    }
    let stage = |name: &String| {
        let depth = if name == root { depth } else { 0 };
        let in_tile = name != root && is_window_of(draft, name, root);
        let vectors = if in_tile { 1 } else { most_vectors(&fused, name, depth, goal) };
        RowStage { name: name.clone(), vectors, in_tile }
    };
    Some(inside.iter().rev().map(stage).collect())
}

/// The iterations of some loops; terms are not limited by what memory holds.
pub(crate) fn iterations<'a>(axes: impl IntoIterator<Item = &'a Axis>) -> i64 {
    axes.into_iter().fold(1, |product, axis| product.saturating_mul(axis.extent))
}

/// Whether a stage combines a few terms for each element of another, which alone reads it, in place, and is
/// element-wise: a sum over a small window.
fn is_window_of(draft: &Draft, stage: &str, reader: &str) -> bool {
    let nest = &draft.nest;
    let (Some(own), Some(root)) = (store_of(nest, stage), store_of(nest, reader)) else {
        return false;
    };
    let Some(accesses) = Accesses::of(nest, stage) else { return false };
    let terms = iterations(accesses.of_role(Role::Reduce));
    let mut in_place = root.combine.is_none();
    root.value.walk_reads(&mut |read| {
        in_place &= read.tensor != own.buffer || read.subscripts == root.subscripts;
    });
    let is_intermediate = nest.buffer(own.buffer).owner == Owner::Intermediate;
    let is_alone = reader_names(nest, own.buffer) == [reader];
    let has_rows = lane_axis(&accesses, 0).is_some_and(|axis| axis.role == Role::Spatial);
    let is_window = own.combine.is_some() && (2..=MOST_TERMS).contains(&terms) && has_rows;
    is_window && in_place && is_alone && is_intermediate
}

/// Whether it costs nothing to compute a stage row by row: it has no operands that a tile of several rows and
/// columns would share, and it is not written out by rules of its own.
fn may_go_by_rows(draft: &Draft, stage: &str) -> bool {
    let Some(store) = store_of(&draft.nest, stage) else { return false };
    let owner = draft.nest.buffer(store.buffer).owner;
    let is_made = matches!(owner, Owner::Intermediate | Owner::Output);
    if !is_made || is_written_out(draft, stage) || is_in_order(draft, stage) {
        return false;
    }
    // A product that the stage reads in place is computed inside its tiles.
    let reduction = epilogue_of(&draft.nest, stage);
    let mut own = [Some(stage.to_owned()), reduction].into_iter().flatten();
    own.all(|stage| Accesses::of(&draft.nest, &stage).is_some_and(|found| !is_product(&found)))
}

/// Whether a reduction is a product of matrices or a convolution of several channels: one operand stands still
/// along a loop over results in which another moves, and the other way round.
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

/// Whether several stages read or write the same rows: otherwise nothing is saved.
fn shares_rows(fused: &Draft, inside: &[String]) -> bool {
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
