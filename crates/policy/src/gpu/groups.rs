//! Partition of a program into launches, by how accesses move with loops.

use tensorwright_lang::program::Expr;
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{LoopNest, Role, Store};
use tensorwright_schedule::placement::{store_of, with_epilogues};
use tensorwright_schedule::primitives::Fuse;

use super::group::Group;
use super::knobs::tile;
use crate::SpaceOptions;
use crate::stages::kinds::{is_in_order, is_movement};
use crate::stages::operand::Operand;
use crate::stages::split::terms;
use crate::stages::steps::inline_by_default;

/// Shorter rows are fused with their neighbours: a warp would have idle threads.
const SHORT: i64 = 32;

/// The groups of a program, and the stages scheduled by rules.
pub(crate) struct Groups {
    /// The groups, in program order.
    pub(crate) tiled: Vec<Group>,
    /// Recurrences, scatters and stages without spatial loops.
    pub(crate) fixed: Vec<String>,
}

/// Inlines cheap stages, and fuses short rows of data movement stages.
pub(crate) fn prepare(draft: &mut ScheduleState) {
    inline_by_default(draft);
    let alone = with_epilogues(&draft.nest).into_iter().filter(|(_, of)| of.is_none());
    for (stage, _) in alone.collect::<Vec<_>>() {
        if is_movement(draft, &stage) && !is_in_order(draft, &stage) {
            flatten(draft, &stage);
        }
    }
}

/// Fuses the innermost loops of a stage while its rows are short and its results contiguous.
fn flatten(draft: &mut ScheduleState, stage: &str) {
    while let Some(accesses) = Accesses::of(&draft.nest, stage)
        && let [.., outer, inner] = accesses.axes.as_slice()
        && inner.extent < SHORT
        && accesses.write.stride(inner) == Some(1)
        && accesses.write.stride(outer) == Some(inner.extent)
    {
        let (outer, inner) = (outer.name.clone(), inner.name.clone());
        let name = Some(format!("{outer}_{inner}"));
        if !draft.step(stage, Fuse { outer, inner, name }) {
            return;
        }
    }
}

/// The groups of a draft: every remaining stage, with the reduction of its epilogue.
pub(crate) fn groups(draft: &ScheduleState, options: &SpaceOptions) -> Groups {
    let mut groups = Groups { tiled: Vec::new(), fixed: Vec::new() };
    for (root, reduction) in with_epilogues(&draft.nest) {
        let is_fixed = is_in_order(draft, &root)
            || reduction.as_ref().is_some_and(|stage| is_in_order(draft, stage));
        let described = match is_fixed {
            true => None,
            false => describe(&draft.nest, &root, reduction.clone(), options),
        };
        match described {
            Some(group) => groups.tiled.push(group),
            None => groups.fixed.extend(reduction.into_iter().chain([root])),
        }
    }
    groups
}

/// The analysis of a root and the reduction that it reads in place; `None` if it has no spatial
/// loop.
pub(crate) fn describe(
    nest: &LoopNest,
    root: &str,
    epilogue: Option<String>,
    options: &SpaceOptions,
) -> Option<Group> {
    let stage = epilogue.as_deref().unwrap_or(root);
    let accesses = Accesses::of(nest, stage)?;
    let root_axes = Accesses::of(nest, root)?.axes;
    let of_role = |role| accesses.of_role(role).cloned().collect::<Vec<Axis>>();
    let (spatial, reduce) = (of_role(Role::Spatial), of_role(Role::Reduce));
    let root_loops: Vec<String> =
        root_axes.into_iter().filter(|a| a.role == Role::Spatial).map(|a| a.name).collect();
    if spatial.is_empty() || root_loops.len() != spatial.len() {
        return None;
    }
    let operand = |access: &Access| Operand::new(nest, access, &spatial, &reduce);
    let reads: Vec<Operand> = accesses.reads.iter().map(operand).collect();
    let store = store_of(nest, stage)?;
    Some(Group {
        root: root.to_owned(),
        contiguous: contiguous(&accesses, &spatial),
        shared_sum: shared_sum(&accesses, &reduce),
        staged: staged(&reads, reduce.is_empty()),
        write: operand(&accesses.write),
        operations: operations(store),
        spatial: tile::results(spatial, options),
        reduce: terms(reduce, options),
        epilogue_of: epilogue,
        root_loops,
        reads,
        parameters: 0..0,
    })
}

/// The loop along which results are contiguous, or closest to it.
fn contiguous(accesses: &Accesses, spatial: &[Axis]) -> usize {
    let distance = |axis: &Axis| accesses.write.stride(axis).map_or(i64::MAX, i64::abs).max(1);
    let long = (0..spatial.len()).filter(|place| spatial[*place].extent > 1);
    let nearest = long.min_by_key(|place| distance(&spatial[*place]));
    nearest.unwrap_or(spatial.len().saturating_sub(1))
}

/// The reduction loop along which most reads are contiguous.
fn shared_sum(accesses: &Accesses, reduce: &[Axis]) -> Option<usize> {
    let in_order =
        |axis: &Axis| accesses.reads.iter().filter(|read| read.stride(axis) == Some(1)).count();
    let long = (0..reduce.len()).filter(|place| reduce[*place].extent >= 2 * SHORT);
    long.max_by_key(|place| (in_order(&reduce[*place]), reduce[*place].extent))
}

/// The tensors that may be staged: those whose elements threads share, at positions known at
/// compile time.
fn staged(reads: &[Operand], is_movement: bool) -> Vec<String> {
    let mut tensors: Vec<String> = Vec::new();
    for read in reads {
        let is_known = read.spatial.iter().chain(&read.reduce).all(Option::is_some);
        let is_reused = !is_movement && read.spatial.contains(&Some(0));
        let is_window =
            read.moved_by.iter().any(|movers| movers.len() > 1) || of(reads, &read.tensor) > 1;
        if is_known && (is_reused || is_window) && !tensors.contains(&read.tensor) {
            tensors.push(read.tensor.clone());
        }
    }
    tensors
}

/// The number of reads of a tensor.
fn of(reads: &[Operand], tensor: &str) -> usize {
    reads.iter().filter(|read| read.tensor == tensor).count()
}

/// The operations of a value; an expensive function counts as several.
pub(crate) fn operations(store: &Store) -> f64 {
    let mut count = 0.0;
    store.value.walk(&mut |expr| {
        count += match expr {
            Expr::Call(..) => 16.0,
            Expr::Read(_) => 0.0,
            _ => 1.0,
        };
    });
    f64::max(count, 1.0)
}
