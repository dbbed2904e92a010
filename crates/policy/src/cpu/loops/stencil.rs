//! The loops of stencils: tiles of several rows by a few vectors.
//!
//! A stage that reads several rows of another reads each of them again for its next row. A tile of
//! several rows reads them once, and a stage that only this tile reads stays in registers:
//!
//! ```text
//! for y, x { bx(y,x) = ..; }                for y.tile, x.panel {
//! for y, x { out(y,x) = bx(y-1,x)     ->      float bx[10][32];                   // registers: all loops are unrolled
//!            + bx(y,x) + bx(y+1,x); }         bx = ..;
//!                                             out(y.rows, x.vectors, ..) = ..;    // 8 rows by 2 vectors
//!                                           }
//! ```
//!
//! Rows at the borders of a tile are recomputed. Stages with reads beyond the vectors of a tile are
//! computed in the block.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_plan::levels::cpu::{LANES, PANEL, ROWS, TERMS, TILE, VECTORS};
use tensorwright_plan::{AxisId, LoopKind, Open, PlannedLoop, Tiling};
use tensorwright_schedule::access::Axis;
use tensorwright_schedule::nest::{LoopNest, Role};

use super::row::lane_axis;
use super::whole;
use crate::stages::rows::iterations;

/// The maximum number of unrolled terms per vector of results.
pub(crate) const MOST_TERMS: i64 = 25;

/// The maximum accumulators of a tile in vectors, over all reductions in it.
const MOST_ACCUMULATORS: i64 = 24;

/// The maximum vectors of a stage in a tile: all of them are unrolled.
const MOST_WRITTEN: i64 = 64;

/// The maximum vectors along a row of a tile.
const MOST_VECTORS: i64 = 4;

/// The loops of a stage in tiles of `rows` rows of an axis, with `sums` reductions in each; `None`
/// if its rows have no vectors.
pub(crate) fn tiling(
    nest: &LoopNest,
    open: &Open,
    (row, rows): (AxisId, i64),
    sums: i64,
    goal: &Goal<Cpu>,
) -> Option<Tiling> {
    let accesses = &open.accesses;
    let is_row = |axis: &Axis| open.axis(axis) == row;
    let depth = open.depth + open.axes().iter().position(is_row).map_or(0, |at| at + 1);
    let axis = lane_axis(accesses, depth).filter(|axis| axis.role == Role::Spatial)?;
    let lanes = lanes(nest, open, goal).min(axis.extent);
    let most = (MOST_ACCUMULATORS / rows / sums.max(1)).clamp(1, MOST_VECTORS);
    let vectors = (1 << most.ilog2()).min(axis.extent / lanes).max(1);
    let id = open.axis(axis);
    let others = open.axes().iter().filter(|other| other.var != axis.var && !is_row(other));
    let (terms, results): (Vec<&Axis>, Vec<&Axis>) =
        others.partition(|other| other.role == Role::Reduce);
    let are_few = iterations(terms.iter().copied()) <= MOST_TERMS;
    let of_terms = if are_few { LoopKind::Unrolled } else { LoopKind::Serial };

    let mut loops = vec![PlannedLoop::new(row, rows, TILE)];
    loops.extend(whole(open, results, TILE, LoopKind::Serial));
    loops.push(PlannedLoop::new(id, vectors * lanes, PANEL));
    let accumulate = (!terms.is_empty()).then_some(PANEL);
    loops.extend(whole(open, terms, TERMS, of_terms));
    loops.push(PlannedLoop::new(row, 1, ROWS).kind(LoopKind::Unrolled));
    loops.extend(vector(id, lanes));
    Some(Tiling { loops, accumulate, ..Tiling::default() })
}

/// The loops of a small stage that stays in registers: all of them are unrolled.
pub(crate) fn in_registers(nest: &LoopNest, open: &Open, goal: &Goal<Cpu>) -> Tiling {
    let accesses = &open.accesses;
    let results = || open.axes().iter().filter(|axis| axis.role == Role::Spatial);
    let Some(axis) = results().find(|axis| accesses.write.stride(axis) == Some(1)) else {
        return Tiling::default();
    };
    let lanes = lanes(nest, open, goal).min(axis.extent);
    let others = |is_single: bool| {
        results().filter(move |o| o.var != axis.var && (o.extent == 1) == is_single)
    };
    let mut loops = whole(open, others(true), TILE, LoopKind::Serial);
    let terms = open.axes().iter().filter(|axis| axis.role == Role::Reduce);
    loops.extend(whole(open, terms, TERMS, LoopKind::Unrolled));
    loops.extend(whole(open, others(false), ROWS, LoopKind::Unrolled));
    loops.extend(vector(open.axis(axis), lanes));
    Tiling { loops, ..Tiling::default() }
}

/// Whether a stage has the width of a tile, and few enough rows and terms to unroll.
pub(crate) fn is_small(nest: &LoopNest, open: &Open, width: Option<i64>, goal: &Goal<Cpu>) -> bool {
    let buffer = nest.buffer(open.accesses.write.buffer);
    let elements = buffer.elements();
    buffer.shape.last().copied() == width
        && iterations(open.accesses.of_role(Role::Reduce)) <= MOST_TERMS
        && elements / lanes(nest, open, goal).max(1) <= MOST_WRITTEN
}

fn lanes(nest: &LoopNest, open: &Open, goal: &Goal<Cpu>) -> i64 {
    goal.target.lanes(nest.dtype(open.accesses.write.buffer).bytes() as i64)
}

/// The unrolled vectors of an axis, and their lanes.
fn vector(axis: AxisId, lanes: i64) -> [PlannedLoop; 2] {
    let vectors = PlannedLoop::new(axis, lanes, VECTORS).kind(LoopKind::Unrolled);
    [vectors, PlannedLoop::new(axis, 1, LANES).kind(LoopKind::Vector)]
}
