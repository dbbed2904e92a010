//! Static rejection: what need not be built to know that it is no good.

use tensorwright_schedule::primitives::{MAX_LANES, Tail};
use tensorwright_target::{Cpu, Goal};

use crate::cpu::group::{Group, Mover, Pack, Vector};
use crate::cpu::tiling::Tiling;
use tensorwright_space::Rejection;

/// The most statements of a stage that are written out: beyond, compiling takes longer than the
/// instruction cache can repay.
const MOST_STATEMENTS: i64 = 640;

/// The rules, in the order in which they are applied.
pub(crate) const RULES: &[(&str, Rule)] = &[
    ("vector", vector),
    ("registers", registers),
    ("unroll", unroll),
    ("padding", padding),
    ("tail", tail),
    ("store", store),
    ("pack", pack),
    ("parallel", parallel),
];

/// A rule about the tiling of a group.
type Rule = fn(&Group, &Tiling, &Goal<Cpu>, Where<'_>) -> Option<String>;

/// Where each tensor of a group is packed.
pub(crate) type Where<'a> = &'a [Option<&'a str>];

/// Applies all rules up to a number of them.
pub(crate) fn check(
    group: &Group,
    tiling: &Tiling,
    goal: &Goal<Cpu>,
    packed: Where<'_>,
    rules: usize,
) -> Result<(), Rejection> {
    for (rule, apply) in &RULES[..rules.min(RULES.len())] {
        if let Some(reason) = apply(group, tiling, goal, packed) {
            return Err(Rejection { rule, reason });
        }
    }
    Ok(())
}

/// Lanes fill whole vectors of the register tile.
fn vector(group: &Group, tiling: &Tiling, _: &Goal<Cpu>, _: Where<'_>) -> Option<String> {
    match tiling.vector {
        Vector::Spatial { axis, lanes } => {
            let split = &group.spatial[axis];
            let tile = tiling.register(axis);
            (split.tile.is_some() && tile % lanes != 0).then(|| {
                format!(
                    "the innermost {tile} of {} are no multiple of {lanes} lanes",
                    split.axis.name
                )
            })
        }
        Vector::Reduce { axis, lanes } => {
            let parts = &tiling.reduce[axis];
            let last = parts.last().copied().unwrap_or(1);
            (parts.len() > 1 && last % lanes != 0).then(|| {
                let name = &group.reduce[axis].axis.name;
                format!("the innermost {last} of {name} are no multiple of {lanes} lanes")
            })
        }
        Vector::Scalar => None,
    }
}

/// The accumulators, a vector of each operand and a broadcast fit the registers (rule 2 of the
/// measurements in docs/performance.md): one too many spills in the innermost loop.
fn registers(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>, _: Where<'_>) -> Option<String> {
    if group.reduce.is_empty() {
        return None;
    }
    let width = (tiling.lanes() * group.element_bytes + goal.target.vector_bytes() - 1)
        / goal.target.vector_bytes().max(1);
    let accumulators = tiling.accumulators() * width.max(1);
    let needed = accumulators + tiling.vectors() * width.max(1) + 1;
    (needed > goal.target.vector_registers()).then(|| {
        let have = goal.target.vector_registers();
        format!("the register tile needs {needed} vector registers of {have}")
    })
}

/// Code that is written out stays small.
fn unroll(group: &Group, tiling: &Tiling, _: &Goal<Cpu>, _: Where<'_>) -> Option<String> {
    let terms = if group.reduce.is_empty() { 1 } else { tiling.unroll };
    let statements = tiling.accumulators().saturating_mul(terms);
    // Every peeled loop makes a smaller copy of what is inside.
    let peels = group.spatial.iter().enumerate().filter(|(place, split)| {
        tiling.tail_of(*place) == Tail::Peel && split.axis.extent % tiling.cover(*place) != 0
    });
    let copies = 1i64 << peels.count().min(8);
    let all = statements.saturating_mul(copies).saturating_mul(group.operands.max(1) + 1) / 3;
    (all > MOST_STATEMENTS)
        .then(|| format!("about {all} statements are written out, more than {MOST_STATEMENTS}"))
}

/// Tiles that do not divide compute no more than half as much again.
fn padding(group: &Group, tiling: &Tiling, _: &Goal<Cpu>, _: Where<'_>) -> Option<String> {
    group.spatial.iter().enumerate().find_map(|(place, split)| {
        let tile = tiling.tile(place).max(1);
        let extent = split.axis.extent.max(1);
        let covered = (extent + tile - 1) / tile * tile;
        // Less than a vector cannot be avoided.
        let excess = covered - extent;
        (2 * excess > extent && excess >= 16).then(|| {
            format!(
                "tiles of {tile} cover {covered} iterations of {}, not {extent}",
                split.axis.name
            )
        })
    })
}

/// A tile that is shifted inwards fits the extent, and no two workers write the same elements; loops
/// whose tails run apart cannot be fused.
fn tail(group: &Group, tiling: &Tiling, _: &Goal<Cpu>, _: Where<'_>) -> Option<String> {
    let shared = usize::try_from(tiling.parallel).unwrap_or(0);
    group.spatial.iter().enumerate().find_map(|(place, split)| {
        let (tile, extent) = (tiling.cover(place), split.axis.extent);
        let name = &split.axis.name;
        if extent % tile == 0 {
            return None;
        }
        let order = tiling.outer_order.iter().position(|axis| *axis == place);
        let is_shared = order.is_some_and(|order| order < shared);
        match tiling.tail_of(place) {
            Tail::Shift if tile > extent => {
                Some(format!("a tile of {tile} cannot be shifted inwards: {name} has {extent}"))
            }
            Tail::Shift if is_shared => {
                Some(format!("two workers would make the same elements along {name}"))
            }
            Tail::Shift | Tail::Peel if is_shared && shared > 1 => {
                Some(format!("{name} has a tail of its own and cannot be fused"))
            }
            _ => None,
        }
    })
}

/// A tile that is turned has a row to be written along, of a vector's size.
fn store(group: &Group, tiling: &Tiling, _: &Goal<Cpu>, _: Where<'_>) -> Option<String> {
    if !tiling.transposes {
        return None;
    }
    let row = group.contiguous?;
    let is_vector = matches!(tiling.vector, Vector::Spatial { axis, .. } if axis == row);
    let rows = tiling.register(row);
    let no_row = !matches!(tiling.vector, Vector::Spatial { .. }) || is_vector;
    (no_row || !(2..=MAX_LANES).contains(&rows)).then(|| {
        format!("no loop of the register tile is along the rows of the result, but {rows} of one")
    })
}

/// Packed panels fit the second-level cache twice over.
fn pack(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>, packed: Where<'_>) -> Option<String> {
    let limit = 2 * goal.target.caches().l2;
    group.packs.iter().zip(packed).find_map(|(pack, place)| {
        let bytes = match *place {
            Some("middle") => panel(pack, tiling, group, true),
            Some("inner") => panel(pack, tiling, group, false),
            _ => return None,
        };
        (bytes > limit).then(|| format!("the panel of {} has {bytes} bytes", pack.tensor))
    })
}

/// The bytes of a packed panel, at most, if loops over results are fixed but for their inner parts.
fn panel(pack: &Pack, tiling: &Tiling, group: &Group, whole_tile: bool) -> i64 {
    let mut bytes = pack.element_bytes;
    for (dimension, movers) in pack.moved_by.iter().enumerate() {
        let reach = movers.iter().fold(1i64, |reach, mover| {
            let (extent, distance) = match *mover {
                Mover::Spatial(axis, distance) if whole_tile => (tiling.tile(axis), distance),
                Mover::Spatial(axis, distance) => (tiling.register(axis), distance),
                Mover::Reduce(axis, distance) => (group.reduce[axis].axis.extent, distance),
            };
            reach.saturating_add((extent - 1).saturating_mul(distance.abs()))
        });
        bytes = bytes.saturating_mul(reach.min(pack.shape[dimension]));
    }
    bytes
}

/// Every worker gets something to do.
fn parallel(group: &Group, tiling: &Tiling, goal: &Goal<Cpu>, _: Where<'_>) -> Option<String> {
    let loops = usize::try_from(tiling.parallel).unwrap_or(0).min(group.spatial.len());
    if loops == 0 {
        return None;
    }
    let order = &tiling.outer_order[..loops.min(tiling.outer_order.len())];
    let iterations: i64 = order.iter().map(|axis| tiling.spatial[*axis][0]).product();
    (iterations < goal.workers)
        .then(|| format!("{iterations} iterations are too few for {} workers", goal.workers))
}
