//! Schedule steps of a block.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::ComputeAt;
use tensorwright_schedule::{ScheduleError, ScheduleState};

use super::cut::{Cut, VECTORS, cut, share};
use super::product::{self, Product, is_product_unit};
use super::tile::Tile;
use super::{Block, Shape, Unit};
use crate::cpu::rows::{self, Chain, Row, RowTiling};

/// The tiling of each chain.
pub(crate) type RowTilings<'a> = &'a dyn Fn(&Chain) -> RowTiling;

/// Schedules a block in a shape. `row_tiling` returns the tiling of a chain.
///
/// # Errors
/// If a step is refused.
pub(crate) fn compute(
    draft: &mut ScheduleState,
    block: &Block,
    shape: Shape,
    (chains, row_tiling): (&[Chain], RowTilings<'_>),
    goal: &Goal<Cpu>,
) -> Result<(), ScheduleError> {
    if let Some(columns) = &block.columns {
        return columns.compute(draft, block, shape.rows, goal);
    }
    let cut = cut(draft, block, shape.rows)?;
    if shape.tile > 1 {
        let tile = in_tiles(draft, block, shape.tile, (chains, row_tiling, &cut), goal)?;
        return tile.map_or(Ok(()), |_| share(draft, block, cut, goal));
    }
    let Cut { all, block: at, row } = &cut;
    // The loops of the root are reordered before anything is computed in them.
    let mut units = block.units.iter().rev();
    let last = units.next();
    let tiles = match last {
        Some(unit @ Unit::Group { root, reduction }) if is_product_unit(draft, unit) => {
            product::order(draft, Product { root, reduction, at: Some(at), shared: &[] }, goal)?
        }
        Some(unit @ Unit::Group { .. }) => {
            place_reduction(draft, block, unit, at)?;
            None
        }
        _ => None,
    };
    if let Some(Unit::Chain(place)) = last {
        rows_inside(draft, &chains[*place], row, row_tiling, goal)?;
    }
    let row_reductions = block.row_reductions.iter();
    let row_reductions =
        row_reductions.map(|reduction| reduction.compute(draft, block, (&cut, shape.rows), goal));
    let row_reductions = row_reductions.collect::<Result<Vec<_>, _>>()?;
    let mut by_rows = Vec::new();
    for unit in units {
        let inside = ComputeAt { consumer: block.root.clone(), at: at.clone() };
        match unit {
            Unit::Chain(place) => {
                let chain = &chains[*place];
                draft.apply(&chain.root, inside)?;
                rows_inside(draft, chain, &chain.row, row_tiling, goal)?;
            }
            Unit::Group { root, reduction } if is_product_unit(draft, unit) => {
                draft.apply(root, inside)?;
                let product = Product { root, reduction, at: None, shared: &[] };
                let tiles = product::order(draft, product, goal)?;
                tiles.map_or(Ok(()), |tiles| product::finish(draft, &tiles, all))?;
            }
            Unit::Group { root, .. } => {
                draft.apply(root, inside)?;
                place_reduction(draft, block, unit, at)?;
                by_rows.push(unit);
            }
        }
    }
    // The compute location of a stage comes first, then its loops are scheduled.
    let last = last.filter(|unit| matches!(unit, Unit::Group { .. }) && tiles.is_none());
    for stage in by_rows.into_iter().chain(last).flat_map(|unit| unit.stages(chains)) {
        let depth = if *stage == block.root { rows::depth(draft, stage, row) } else { 0 };
        Row { draft, stage, at, depth, vectors: VECTORS, is_short: false, goal }.schedule()?;
    }
    for tiles in tiles.into_iter().chain(row_reductions.into_iter().flatten()) {
        product::finish(draft, &tiles, all)?;
    }
    share(draft, block, cut, goal)
}

/// Computes the last stage in register tiles of several rows, and the others inside these or in the
/// block; `None` if its rows have no vectors.
///
/// # Errors
/// If a step is refused.
pub(super) fn in_tiles<'a>(
    draft: &mut ScheduleState,
    block: &'a Block,
    rows: i64,
    (chains, row_tiling, cut): (&[Chain], RowTilings<'_>, &Cut),
    goal: &Goal<Cpu>,
) -> Result<Option<Tile<'a>>, ScheduleError> {
    let Some(mut tile) = Tile::cut(draft, block, rows, (chains, cut), goal)? else {
        return Ok(None);
    };
    let inside = || ComputeAt { consumer: block.root.clone(), at: cut.block.clone() };
    let mut by_rows = Vec::new();
    for unit in block.units.iter().rev() {
        let is_last = unit.root(chains) == &block.root;
        if let (Unit::Chain(place), false) = (unit, is_last) {
            let chain = &chains[*place];
            draft.apply(&chain.root, inside())?;
            rows_inside(draft, chain, &chain.row, row_tiling, goal)?;
            continue;
        }
        for stage in unit.stages(chains).into_iter().rev().filter(|stage| **stage != block.root) {
            // The stage may have been inlined.
            if store_of(&draft.nest, stage).is_none() || tile.place(draft, stage, goal) {
                continue;
            }
            draft.apply(stage, inside())?;
            by_rows.push(stage);
        }
    }
    for stage in by_rows {
        let at = &cut.block;
        Row { draft, stage, at, depth: 0, vectors: VECTORS, is_short: false, goal }.schedule()?;
    }
    tile.finish(draft, goal)?;
    Ok(Some(tile))
}

/// Computes a reduction that is not a product inside the block.
fn place_reduction(
    draft: &mut ScheduleState,
    block: &Block,
    unit: &Unit,
    at: &str,
) -> Result<(), ScheduleError> {
    let Unit::Group { reduction: Some(reduction), .. } = unit else { return Ok(()) };
    draft.apply(reduction, ComputeAt { consumer: block.root.clone(), at: at.to_owned() })
}

fn rows_inside(
    draft: &mut ScheduleState,
    chain: &Chain,
    row: &str,
    row_tiling: RowTilings<'_>,
    goal: &Goal<Cpu>,
) -> Result<(), ScheduleError> {
    // Blocks are parallel, not rows.
    let tiling = RowTiling { is_parallel: false, ..row_tiling(chain) };
    let chain = Chain { row: row.to_owned(), ..chain.clone() };
    rows::compute(draft, &chain, &tiling, goal)
}
