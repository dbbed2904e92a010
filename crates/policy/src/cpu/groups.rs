//! Partition of a program into groups.
//!
//! No operator is known by name: groups follow from how accesses move with loops.

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{LoopNest, Role};
use tensorwright_schedule::placement::with_epilogues;

use crate::cpu::group::Group;
use crate::cpu::knobs::{SpaceRequest, pack, tile, vector};
use crate::stages::kinds::{is_in_order, is_movement};
use crate::stages::operand::Operand;
use crate::stages::split::{FEWEST, terms};

/// The groups of a program, and the stages scheduled by rules.
pub(crate) struct Groups {
    /// The groups, in program order.
    pub(crate) tiled: Vec<Group>,
    /// Recurrences, scatters, and data movement of rewritten stages.
    pub(crate) fixed: Vec<String>,
}

/// The groups of a draft: every remaining stage, with the reduction of its epilogue.
pub(crate) fn groups(
    draft: &ScheduleState,
    request: SpaceRequest<'_>,
    is_rewritten: bool,
) -> Groups {
    let nest = &draft.nest;
    let is_fixed = |(root, reduction): &(String, Option<String>)| {
        let is_moved = is_rewritten && reduction.is_none() && is_movement(draft, root);
        is_moved || is_in_order(draft, root)
    };
    let (fixed, tiled): (Vec<_>, Vec<_>) = with_epilogues(nest).into_iter().partition(is_fixed);
    let of = |(root, reduction)| describe(nest, root, reduction, request);
    Groups {
        tiled: tiled.into_iter().filter_map(of).collect(),
        // Readers first: their remaining work is known then.
        fixed: fixed.into_iter().rev().map(|(root, _)| root).collect(),
    }
}

/// The analysis of a root and the reduction that it reads in place; `None` if there is no such
/// stage.
fn describe(
    nest: &LoopNest,
    root: String,
    epilogue: Option<String>,
    request: SpaceRequest<'_>,
) -> Option<Group> {
    let stage = epilogue.clone().unwrap_or_else(|| root.clone());
    let accesses = Accesses::of(nest, &stage)?;
    let root_axes = Accesses::of(nest, &root)?.axes;
    let of_role = |role| accesses.of_role(role).cloned().collect::<Vec<Axis>>();
    let (spatial, reduce) = (of_role(Role::Spatial), of_role(Role::Reduce));
    let root_loops: Vec<String> =
        root_axes.into_iter().filter(|a| a.role == Role::Spatial).map(|a| a.name).collect();
    let element_bytes = nest.dtype(accesses.write.buffer).bytes() as i64;
    let lanes = request.goal.target.lanes(element_bytes);
    let vectors = vector::candidates(&accesses, &spatial, &reduce, lanes);
    let operand = |access: &Access| Operand::new(nest, access, &spatial, &reduce);
    Some(Group {
        root,
        epilogue_of: epilogue,
        contiguous: written_along(&accesses, &spatial),
        root_loops,
        packs: pack::candidates(nest, &accesses, &spatial, &reduce),
        element_bytes,
        operands: operands(&accesses),
        reads: accesses.reads.iter().map(operand).collect(),
        write: operand(&accesses.write),
        spatial: tile::results(spatial, &vectors, lanes, request.options),
        reduce: terms(reduce, request.options),
        vectors,
        parameters: 0..0,
    })
}

/// The loop along which results are contiguous or nearly so: a vector of them then touches few
/// cache lines.
fn written_along(accesses: &Accesses, spatial: &[Axis]) -> Option<usize> {
    let stride =
        |axis: &Axis| accesses.write.stride(axis).filter(|stride| (1..=4).contains(stride));
    let near = spatial.iter().enumerate().filter(|(_, axis)| axis.extent >= FEWEST);
    let nearest = near.filter_map(|(place, axis)| Some((stride(axis)?, place))).min();
    let next = || spatial.iter().position(|axis| accesses.write.stride(axis) == Some(1));
    nearest.map(|(_, place)| place).or_else(next)
}

/// The number of distinct tensors that a stage reads.
fn operands(accesses: &Accesses) -> i64 {
    let mut tensors: Vec<_> = accesses.reads.iter().map(|read| read.buffer).collect();
    tensors.sort_unstable();
    tensors.dedup();
    tensors.len() as i64
}
