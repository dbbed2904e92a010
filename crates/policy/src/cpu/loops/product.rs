//! The loops of a sum of products: register tiles of rows by vectors.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_plan::levels::cpu::{
    LANES, PANEL, ROWS, TERM_BLOCKS, TERMS, TILE, VECTORS, WRITTEN,
};
use tensorwright_plan::{AxisId, Level, LoopKind, LoopRef, Open, Pack, PlannedLoop, Stage, Tiling};
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{LoopNest, Role};
use tensorwright_schedule::placement::reader_names;

use super::whole;
use crate::cpu::register_tile::{Along, RegisterTile, register_tile};

/// The unroll factor of the reduction loop.
const UNROLLED: i64 = 2;

/// The register tile of a product.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    /// The axes of its vectors and its rows, by their places among the spatial axes.
    vector: usize,
    row: Option<usize>,
    tile: RegisterTile,
    lanes: i64,
}

impl Product {
    /// The level whose loop contains one register tile.
    pub(crate) fn host(&self) -> Level {
        if self.row.is_some() { TILE } else { PANEL }
    }

    /// The loops of a product, or of the epilogue that reads the given reduction in place.
    pub(crate) fn root(
        (nest, open, stage): (&LoopNest, &Open, Option<&Stage>),
        reduction: Option<&Accesses>,
        goal: &Goal<Cpu>,
    ) -> Option<(Self, Tiling)> {
        let accesses = reduction.unwrap_or(&open.accesses);
        let bytes = nest.dtype(accesses.write.buffer).bytes() as i64;
        let lanes = goal.target.lanes(bytes);
        let spatial: Vec<&Axis> =
            open.axes().iter().filter(|axis| axis.role == Role::Spatial).collect();
        let (vector, rest) = spatial.split_last()?;
        let row = rest.iter().rev().find(|axis| axis.extent > 1);
        let along = Along { vector: vector.extent, rows: row.map_or(1, |row| row.extent), lanes };
        let tile = register_tile(&goal.target, along);
        let lanes = lanes.min(vector.extent);
        let place = |axis: &Axis| {
            let id = open.axis(axis);
            stage?.of_role(Role::Spatial).position(|(own, _)| own == id)
        };
        let (row_axis, vector_axis) = (row.map(|row| open.axis(row)), open.axis(vector));
        let product =
            Self { vector: place(vector)?, row: row.and_then(|row| place(row)), tile, lanes };

        let is_other = |axis: &&&Axis| row.is_none_or(|row| row.var != axis.var);
        let others = rest.iter().filter(is_other).copied();
        let mut loops = whole(open, others, TILE, LoopKind::Serial);
        loops.push(PlannedLoop::new(vector_axis, tile.vectors * lanes, PANEL));
        // A block of the other operand stays in the L1 cache.
        let block = goal.target.caches().l1 / 2 / (tile.vectors * lanes * bytes).max(1);
        let terms = if reduction.is_some() { Vec::new() } else { terms(open, Some(block)) };
        let (blocks, terms): (Vec<_>, Vec<_>) =
            terms.into_iter().partition(|l| l.level == TERM_BLOCKS);
        loops.extend(blocks);
        loops.extend(row_axis.map(|row| PlannedLoop::new(row, tile.rows, TILE)));
        loops.extend(terms);
        loops.extend(product.inner(row_axis, vector_axis));
        let accumulate = reduction.is_none().then_some(product.host());
        Some((product, Tiling { loops, accumulate, ..Tiling::default() }))
    }

    /// The loops of a product inside of a tile of its epilogue.
    pub(crate) fn inside(&self, open: &Open, stage: Option<&Stage>) -> Tiling {
        let axis = |place: usize| Some(stage?.of_role(Role::Spatial).nth(place)?.0);
        let (row, vector) = (self.row.and_then(axis), axis(self.vector));
        let is_tile = |axis: &Axis| {
            let id = open.axis(axis);
            Some(id) == vector || Some(id) == row
        };
        let others = open.axes().iter().filter(|a| a.role == Role::Spatial && !is_tile(a));
        let mut loops = whole(open, others, TILE, LoopKind::Serial);
        loops.extend(terms(open, None));
        loops.extend(vector.map(|vector| self.inner(row, vector)).unwrap_or_default());
        Tiling { loops, ..Tiling::default() }
    }

    /// The loops of one register tile.
    fn inner(&self, row: Option<AxisId>, vector: AxisId) -> Vec<PlannedLoop> {
        let row = row.map(|row| PlannedLoop::new(row, 1, ROWS).kind(LoopKind::Unrolled));
        let vectors = PlannedLoop::new(vector, self.lanes, VECTORS).kind(LoopKind::Unrolled);
        let lanes = PlannedLoop::new(vector, 1, LANES).kind(LoopKind::Vector);
        row.into_iter().chain([vectors, lanes]).collect()
    }

    /// Copies of the operands that are strided along the vectors. Without them, elements are
    /// gathered.
    pub(crate) fn packs(
        &self,
        (nest, open): (&LoopNest, &Open),
        reduction: Option<&Accesses>,
        at: LoopRef,
    ) -> Vec<Pack> {
        let accesses = reduction.unwrap_or(&open.accesses);
        let own = || open.axes().iter().rfind(|axis| axis.role == Role::Spatial);
        let inner = reduction.map(|inner| inner.of_role(Role::Spatial).nth(self.vector));
        let Some(axis) = inner.unwrap_or_else(own) else { return Vec::new() };
        let of = |read: &Access| {
            Some(Pack {
                tensor: nest.buffer(read.buffer).name.clone(),
                at,
                // Other stages may read it along another dimension.
                is_alone: reader_names(nest, read.buffer).len() > 1,
                along: read.dimension_of(axis)?,
                width: self.tile.vectors * self.lanes,
                lanes: self.lanes,
            })
        };
        let is_apart = |read: &&Access| !matches!(read.stride(axis), Some(0 | 1));
        let mut found: Vec<Pack> = accesses.reads.iter().filter(is_apart).filter_map(of).collect();
        found.dedup();
        found
    }
}

/// The open reduction loops. The last is split into blocks of about `block` terms, if there are
/// several, and its terms are unrolled.
fn terms(open: &Open, block: Option<i64>) -> Vec<PlannedLoop> {
    let all: Vec<&Axis> = open.axes().iter().filter(|axis| axis.role == Role::Reduce).collect();
    let Some((last, others)) = all.split_last().filter(|(last, _)| last.extent >= 8 * UNROLLED)
    else {
        return whole(open, all, TERMS, LoopKind::Serial);
    };
    let mut loops = whole(open, others.iter().copied(), TERMS, LoopKind::Serial);
    let axis = open.axis(last);
    // Several reduction loops belong to windows, whose operands are small.
    if let Some(block) = block.filter(|block| all.len() == 1 && last.extent / 2 >= *block) {
        let most = (block / UNROLLED).max(1);
        // Avoids a tail if blocks stay about as large.
        let whole = (most / 2 + 1..=most).rev().find(|n| last.extent % (n * UNROLLED) == 0);
        let size = whole.unwrap_or(most) * UNROLLED;
        loops.push(PlannedLoop::new(axis, size, TERM_BLOCKS));
    }
    loops.push(PlannedLoop::new(axis, UNROLLED, TERMS));
    loops.push(PlannedLoop::new(axis, 1, WRITTEN).kind(LoopKind::Unrolled));
    loops
}
