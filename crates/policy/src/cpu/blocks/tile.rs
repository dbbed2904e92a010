//! Register tiles of stencils: several rows by a few vectors.
//!
//! A stage that reads several rows of another reads each of them again for its next row. A tile of
//! several rows reads them once, and a stage that only this tile reads stays in registers:
//!
//! ```text
//! for y, x { bx(y,x) = ..; }                for y.tile, x.0 {
//! for y, x { out(y,x) = bx(y-1,x)     ->      float bx[10][32];                   // registers: all loops are unrolled
//!            + bx(y,x) + bx(y+1,x); }         bx = ..;
//!                                             out(y.tile.., x.0..) = ..;          // 8 rows by 2 vectors
//!                                           }
//! ```
//!
//! Rows at the borders of a tile are recomputed. Stages with reads beyond the vectors of a tile are
//! computed in the block.

use tensorwright_lang::ops::ArithOp;
use tensorwright_lang::program::Expr;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::placement::{reader_names, store_of};
use tensorwright_schedule::primitives::{
    CacheWrite, ComputeAt, Reorder, Split, Tail, Unroll, Vectorize,
};
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::cut::Cut;
use super::{Block, Unit};
use crate::cpu::rows::{self, Chain, MOST_TERMS};
use crate::stages::rows::iterations;

/// The candidate heights of a tile in rows.
pub(super) const ROWS: [i64; 3] = [8, 16, 4];

/// The maximum accumulators of a tile in vectors, over all reductions in it.
const MOST_ACCUMULATORS: i64 = 24;

/// The maximum vectors along a row of a tile.
const MOST_VECTORS: i64 = 4;

/// The maximum vectors of a stage in a tile: all of them are unrolled.
const MOST_WRITTEN: i64 = 64;

/// The maximum recomputation factor of a cheap stage for tiles to be the first choice.
const OVERLAP: f64 = 1.5;

/// A tile of a block's last stage, with loops in order.
pub(super) struct Tile<'a> {
    block: &'a Block,
    /// The loop around a tile.
    host: String,
    /// The loops of a tile: reduction loops of the stage itself, rows, vectors and lanes.
    terms: Vec<Axis>,
    rows: String,
    vectors: String,
    lanes: String,
    /// The width of a tile in elements.
    width: i64,
    /// The stages computed in the tile.
    pub(super) inside: Vec<String>,
}

impl<'a> Tile<'a> {
    /// Splits the last stage of a block into tiles of several rows; `None` if its rows have no
    /// vectors.
    ///
    /// # Errors
    /// If a step is refused.
    pub(super) fn cut(
        draft: &mut ScheduleState,
        block: &'a Block,
        rows: i64,
        (chains, cut): (&[Chain], &Cut),
        goal: &Goal<Cpu>,
    ) -> Result<Option<Self>, ScheduleError> {
        let root = &block.root;
        let depth = rows::depth(draft, root, &cut.row);
        let Some(accesses) = Accesses::of(&draft.nest, root) else { return Ok(None) };
        let axis = rows::lane_axis(&accesses, depth).filter(|axis| axis.role == Role::Spatial);
        let Some(axis) = axis.cloned() else { return Ok(None) };
        let bytes = draft.nest.dtype(accesses.write.buffer).bytes() as i64;
        let lanes = goal.target.lanes(bytes).min(axis.extent);
        let sums = match block.units.last() {
            Some(Unit::Chain(place)) => chains[*place].stages.len() as i64 - 1,
            _ => 1,
        };
        let most = (MOST_ACCUMULATORS / rows / sums.max(1)).clamp(1, MOST_VECTORS);
        let vectors = (1 << most.ilog2()).min(axis.extent / lanes).max(1);
        let part = |of: &str, name: &str| format!("{of}.{name}");
        let (tile, row) = (part(&cut.row, "tile"), part(&cut.row, "rows"));
        let host = part(&axis.name, "0");
        let (vector, lane) = (part(&axis.name, "vectors"), part(&axis.name, "lanes"));
        let mut split = Split::new(&cut.row, &[rows]).tail(Tail::Peel);
        split.names = vec![tile.clone(), row.clone()];
        draft.apply(root, split)?;
        let mut split = Split::new(&axis.name, &[vectors, lanes]).tail(Tail::Peel);
        split.names = vec![host.clone(), vector.clone(), lane.clone()];
        draft.apply(root, split)?;
        let others = accesses.axes.iter().skip(depth).filter(|other| other.var != axis.var);
        let (terms, results): (Vec<Axis>, Vec<Axis>) =
            others.cloned().partition(|other| other.role == Role::Reduce);
        let names = |axes: &[Axis]| axes.iter().map(|axis| axis.name.clone()).collect::<Vec<_>>();
        let inner = [row.clone(), vector.clone(), lane.clone()];
        let around = std::iter::once(tile).chain(names(&results)).chain([host.clone()]);
        let order = around.chain(names(&terms)).chain(inner).collect();
        draft.apply(root, Reorder { order })?;
        let (rows, width) = (row, vectors * lanes);
        let inside = Vec::new();
        Ok(Some(Self { block, host, terms, rows, vectors: vector, lanes: lane, width, inside }))
    }

    /// Computes a stage in the tile if all its readers are there and read only inside its vectors.
    pub(super) fn place(
        &mut self,
        draft: &mut ScheduleState,
        stage: &str,
        goal: &Goal<Cpu>,
    ) -> bool {
        let Some(buffer) = store_of(&draft.nest, stage).map(|store| store.buffer) else {
            return false;
        };
        let is_here = |reader: &String| *reader == self.block.root || self.inside.contains(reader);
        if !reader_names(&draft.nest, buffer).iter().all(is_here) {
            return false;
        }
        let place = ComputeAt { consumer: self.block.root.clone(), at: self.host.clone() };
        let width = self.width;
        let placed =
            draft.steps(|draft| draft.step(stage, place) && is_small(draft, stage, width, goal));
        if placed {
            self.inside.push(stage.to_owned());
        }
        placed
    }

    /// Unrolls all loops of the tile.
    ///
    /// # Errors
    /// If a step is refused.
    pub(super) fn finish(
        &self,
        draft: &mut ScheduleState,
        goal: &Goal<Cpu>,
    ) -> Result<(), ScheduleError> {
        let root = &self.block.root;
        for stage in &self.inside {
            rows::in_registers(draft, stage, goal)?;
        }
        let are_few = iterations(&self.terms) <= MOST_TERMS;
        let terms = self.terms.iter().filter(|_| are_few).map(|axis| &axis.name);
        for target in terms.chain([&self.rows, &self.vectors]) {
            draft.apply(root, Unroll { target: target.clone() })?;
        }
        draft.apply(root, Vectorize { target: self.lanes.clone() })?;
        match self.terms.is_empty() {
            true => Ok(()),
            false => draft.apply(root, CacheWrite { at: self.host.clone() }),
        }
    }

    /// Whether the tile recomputes little, or only cheap stages.
    pub(super) fn pays(&self, draft: &ScheduleState, rows: i64) -> bool {
        self.inside.iter().all(|stage| {
            let Some(store) = store_of(&draft.nest, stage) else { return false };
            let elements = draft.nest.buffer(store.buffer).elements() as f64;
            let times = elements / (rows * self.width) as f64;
            times <= 1.0 || store.combine.is_none() && times <= OVERLAP && is_cheap(&store.value)
        })
    }
}

/// Whether a stage has the width of a tile, and few enough rows and terms to unroll.
fn is_small(draft: &ScheduleState, stage: &str, width: i64, goal: &Goal<Cpu>) -> bool {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return false };
    let buffer = draft.nest.buffer(accesses.write.buffer);
    let lanes = goal.target.lanes(buffer.dtype.bytes() as i64).max(1);
    buffer.shape.last() == Some(&width)
        && iterations(accesses.of_role(Role::Reduce)) <= MOST_TERMS
        && buffer.elements() / lanes <= MOST_WRITTEN
}

/// Whether a value has no division, except by powers of two, and no function calls.
fn is_cheap(value: &Expr) -> bool {
    let mut cheap = true;
    value.walk(&mut |expr| {
        cheap &= match expr {
            Expr::Arith(ArithOp::Div, _, divisor) => is_power_of_two(divisor),
            Expr::Call(..) => false,
            _ => true,
        };
    });
    cheap
}

fn is_power_of_two(value: &Expr) -> bool {
    match value {
        Expr::Const(number) => number.as_f64().abs().log2().fract() == 0.0,
        Expr::Index(index, _) => index.as_constant().is_some_and(|n| n > 0 && n & (n - 1) == 0),
        _ => false,
    }
}
