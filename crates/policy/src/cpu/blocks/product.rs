//! A product inside a block: register tiles of rows by vectors.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::placement::reader_names;
use tensorwright_schedule::primitives::{
    CacheRead, CacheWrite, ComputeAt, LayoutText, Part, Reorder, Split, Tail, Unroll, Vectorize,
};
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::Unit;
use crate::cpu::register_tile::{Along, register_tile};
use crate::stages::rows::is_product;

/// The unroll factor of the reduction loop.
const TERMS: i64 = 2;

/// A product: a reduction, or an epilogue that reads one in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) root: &'a String,
    pub(super) reduction: &'a Option<String>,
    /// Its loop around the block; `None` if it is computed inside another stage.
    pub(super) at: Option<&'a str>,
    /// Reduction loops shared with another stage: they enclose only the row and vector loops.
    pub(super) shared: &'a [String],
}

/// The loops of a product after reordering.
#[derive(Debug, Clone)]
pub(super) struct Tiles {
    root: String,
    reduction: Option<String>,
    /// The loop over register tiles along the rows.
    tiles: String,
    /// The width of a tile in elements along the vectors.
    width: i64,
    /// The unrolled loops, and the loop of the lanes.
    unrolled: Vec<String>,
    lanes: String,
    lane_count: i64,
    /// The row and vector loops of the reduction.
    rows: Option<String>,
    vector: String,
    turned: Vec<TransposedOperand>,
}

/// A tensor that is strided along the vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TransposedOperand {
    tensor: String,
    rank: usize,
    /// The dimension along the vectors.
    dimension: usize,
    /// Whether other stages read it too, maybe along another dimension.
    is_alone: bool,
}

/// Splits and reorders the loops of a product.
pub(super) fn order(
    draft: &mut ScheduleState,
    product: Product<'_>,
    goal: &Goal<Cpu>,
) -> Result<Option<Tiles>, ScheduleError> {
    let Product { root, reduction, at, shared } = product;
    let stage = reduction.as_ref().unwrap_or(root);
    let found = Accesses::of(&draft.nest, stage).zip(Accesses::of(&draft.nest, root));
    let Some((accesses, outer)) = found else { return Ok(None) };
    let spatial: Vec<Axis> = accesses.of_role(Role::Spatial).cloned().collect();
    let own: Vec<Axis> = outer.of_role(Role::Spatial).cloned().collect();
    let around = own.iter().position(|axis| Some(axis.name.as_str()) == at).map_or(0, |at| at + 1);
    let lanes = goal.target.lanes(draft.nest.dtype(accesses.write.buffer).bytes() as i64);
    // The loops of an epilogue correspond to those of the reduction, with names of their own.
    let offset = own.len().saturating_sub(spatial.len());
    let Some(vector) = own.last() else { return Ok(None) };
    let last = own.len() - 1;
    let row = own[around.min(last)..last].iter().rev().find(|axis| axis.extent > 1);
    let along = Along { vector: vector.extent, rows: row.map_or(1, |row| row.extent), lanes };
    let tile = register_tile(&goal.target, along);
    let lanes = lanes.min(vector.extent);
    let name = |axis: &Axis, part: &str| format!("{}.{part}", axis.name);
    let mut split = Split::new(&vector.name, &[tile.vectors, lanes]).tail(Tail::Peel);
    let (panels, vectors, lane) =
        (name(vector, "panel"), name(vector, "vectors"), name(vector, "lanes"));
    split.names = vec![panels.clone(), vectors.clone(), lane.clone()];
    draft.apply(root, split)?;
    let mut unrolled = Vec::new();
    let mut tiles = panels.clone();
    if let Some(row) = row {
        let mut split = Split::new(&row.name, &[tile.rows]).tail(Tail::Peel);
        tiles = name(row, "tile");
        split.names = vec![tiles.clone(), name(row, "rows")];
        draft.apply(root, split)?;
        unrolled.push(name(row, "rows"));
    }
    unrolled.push(vectors.clone());
    let rest = own[..last].iter().filter(|axis| Some(axis.var) != row.map(|row| row.var));
    let mut order: Vec<String> = rest.map(|axis| axis.name.clone()).collect();
    order.extend(shared.iter().cloned());
    order.push(panels.clone());
    let inner = (tiles != panels).then(|| tiles.clone());
    if reduction.is_none() {
        let bytes = draft.nest.dtype(accesses.write.buffer).bytes() as i64;
        let row = tile.vectors * lanes * bytes;
        let block = goal.target.caches().l1 / 2 / row.max(1);
        let terms = Terms::split(draft, root, (&accesses, shared), Some(block))?;
        unrolled.extend(terms.written.clone());
        order.extend(terms.blocks);
        order.extend(inner);
        order.extend(terms.others);
        order.extend(terms.written);
    } else {
        order.extend(inner);
    }
    order.extend(row.map(|row| name(row, "rows")));
    order.extend([vectors, lane.clone()]);
    draft.apply(root, Reorder { order })?;
    let place = last - offset.min(last);
    let inner = |axis: Option<&Axis>| axis.map(|axis| axis.name.clone());
    let row_place = row.and_then(|row| own.iter().position(|axis| axis.var == row.var));
    Ok(Some(Tiles {
        root: root.clone(),
        reduction: reduction.clone(),
        tiles,
        width: tile.vectors * lanes,
        unrolled,
        lanes: lane,
        lane_count: lanes,
        rows: row_place.and_then(|at| inner(spatial.get(at - offset.min(at)))),
        vector: inner(spatial.get(place)).unwrap_or_default(),
        turned: spatial.get(place).map_or_else(Vec::new, |axis| turned(draft, &accesses, axis)),
    }))
}

/// Computes the reduction inside the tiles, unrolls them, and packs strided operands at the loop
/// `copies`.
pub(super) fn finish(
    draft: &mut ScheduleState,
    tiles: &Tiles,
    copies: &str,
) -> Result<(), ScheduleError> {
    let root = &tiles.root;
    if let Some(reduction) = &tiles.reduction {
        let at = ComputeAt { consumer: root.clone(), at: tiles.tiles.clone() };
        draft.apply(reduction, at)?;
        inside(draft, reduction, tiles)?;
    }
    for name in &tiles.unrolled {
        draft.apply(root, Unroll { target: name.clone() })?;
    }
    draft.apply(root, Vectorize { target: tiles.lanes.clone() })?;
    if tiles.reduction.is_none() {
        draft.apply(root, CacheWrite { at: tiles.tiles.clone() })?;
    }
    let stage = match &tiles.reduction {
        Some(reduction) => reduction.clone(),
        None => format!("{root}.tile"),
    };
    for turned in &tiles.turned {
        turn(draft, &stage, turned, tiles, copies);
    }
    Ok(())
}

/// Schedules the loops of a reduction over a tile of its epilogue.
fn inside(draft: &mut ScheduleState, stage: &str, tiles: &Tiles) -> Result<(), ScheduleError> {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Ok(()) };
    let terms = Terms::split(draft, stage, (&accesses, &[]), None)?;
    let vector = &tiles.vector;
    let (vectors, lanes) = (format!("{vector}.in"), format!("{vector}.lanes"));
    let mut split = Split::new(vector, &[tiles.lane_count]);
    split.names = vec![vectors.clone(), lanes.clone()];
    draft.apply(stage, split)?;
    let mut order = terms.others.clone();
    order.extend(terms.written.clone());
    order.extend(tiles.rows.clone());
    order.extend([vectors.clone(), lanes.clone()]);
    draft.apply(stage, Reorder { order })?;
    for name in terms.written.iter().chain(&tiles.rows).chain([&vectors]) {
        draft.apply(stage, Unroll { target: name.clone() })?;
    }
    draft.apply(stage, Vectorize { target: lanes })
}

/// The reduction loops, outermost first.
#[derive(Debug, Default)]
struct Terms {
    /// The loop over blocks of terms, around the tiles along the rows: a block of the other operand
    /// stays in the L1 cache.
    blocks: Option<String>,
    /// The loops inside a tile.
    others: Vec<String>,
    /// The unrolled loop.
    written: Option<String>,
}

impl Terms {
    /// Splits the last unshared reduction loop into blocks of `block` terms, if there are several,
    /// and an unrolled loop.
    fn split(
        draft: &mut ScheduleState,
        stage: &str,
        (accesses, shared): (&Accesses, &[String]),
        block: Option<i64>,
    ) -> Result<Self, ScheduleError> {
        let own = accesses.of_role(Role::Reduce).filter(|axis| !shared.contains(&axis.name));
        let all: Vec<&Axis> = own.collect();
        let others = all.iter().map(|axis| axis.name.clone()).collect();
        let mut terms = Self { others, ..Self::default() };
        let Some(last) = all.last().filter(|axis| axis.extent >= 8 * TERMS) else {
            return Ok(terms);
        };
        let name = |part: &str| format!("{}.{part}", last.name);
        let mut split = Split::new(&last.name, &[TERMS]).tail(Tail::Peel);
        split.names = vec![name("terms"), name("written")];
        // Several reduction loops belong to windows, whose operands are small.
        if let Some(block) = block.filter(|block| all.len() == 1 && last.extent / 2 >= *block) {
            let most = (block / TERMS).max(1);
            // Avoids a tail if blocks stay about as large.
            let whole = (most / 2 + 1..=most).rev().find(|n| last.extent % (n * TERMS) == 0);
            split.factors.insert(0, whole.unwrap_or(most));
            split.names.insert(0, name("blocks"));
            terms.blocks = Some(name("blocks"));
        }
        draft.apply(stage, split)?;
        terms.others.pop();
        terms.others.push(name("terms"));
        terms.written = Some(name("written"));
        Ok(terms)
    }
}

/// The operands that are strided along the vectors.
fn turned(draft: &ScheduleState, accesses: &Accesses, axis: &Axis) -> Vec<TransposedOperand> {
    let is_apart = |read: &&Access| !matches!(read.stride(axis), Some(0 | 1));
    let of = |read: &Access| {
        let buffer = draft.nest.buffer(read.buffer);
        Some(TransposedOperand {
            tensor: buffer.name.clone(),
            rank: buffer.shape.len(),
            dimension: read.dimension_of(axis)?,
            is_alone: reader_names(&draft.nest, read.buffer).len() > 1,
        })
    };
    let mut found: Vec<_> = accesses.reads.iter().filter(is_apart).filter_map(of).collect();
    found.dedup();
    found
}

/// Packs a tensor into panels as wide as a tile, contiguous along the vectors. Without packing its
/// elements are gathered.
fn turn(
    draft: &mut ScheduleState,
    stage: &str,
    TransposedOperand { tensor, rank, dimension, is_alone }: &TransposedOperand,
    tiles: &Tiles,
    copies: &str,
) {
    let (is_alone, dimension) = (*is_alone, *dimension);
    let others = || (0..*rank).filter(|other| *other != dimension);
    let order: Vec<usize> = others().chain([dimension]).collect();
    let whole = others().map(|other| Part::Whole(other as u32));
    let mut parts = vec![Part::Quotient(dimension as u32, tiles.width)];
    parts.extend(whole.chain([Part::Remainder(dimension as u32, tiles.width)]));
    let layout = Some(LayoutText { parts });
    let read = CacheRead { layout, is_alone, ..CacheRead::new(tensor, copies) };
    let copy = format!("{tensor}.pack");
    let lane = format!("d{dimension}");
    draft.steps(|draft| {
        draft.step(stage, read)
            && draft.step(&copy, Reorder { order: order.iter().map(|d| format!("d{d}")).collect() })
            && draft.step(&copy, Split::new(&lane, &[tiles.lane_count]))
            && draft.step(&copy, Vectorize { target: format!("{lane}.1") })
    });
}

/// Whether a unit is a matrix product or a convolution.
pub(super) fn is_product_unit(draft: &ScheduleState, unit: &Unit) -> bool {
    let Unit::Group { root, reduction } = unit else { return false };
    let stage = reduction.as_ref().unwrap_or(root);
    Accesses::of(&draft.nest, stage).is_some_and(|accesses| is_product(&accesses))
}
