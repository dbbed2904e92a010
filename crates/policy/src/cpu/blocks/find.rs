//! Finds stages to compute together in blocks of rows.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{BufferId, Owner, Role};
use tensorwright_schedule::placement::{reader_names, store_of, with_epilogues};
use tensorwright_schedule::primitives::{ComputeAt, Split, Tail};

use super::row_reduction::RowReduction;
use super::steps::is_for_all;
use super::{Block, SIZES, START, STENCIL_START, Shape, Unit, columns, is_product_unit, tiles};
use crate::cpu::rows::Chain;
use crate::stages::kinds::{is_in_order, is_movement, is_written_out};
use crate::stages::only::only;

/// The maximum size of an operand that every block reads again, in L2 caches.
const PANELS: i64 = 4;

/// The maximum recomputation factor of a stage without reduction: blocks overlap where a stencil
/// reads neighbouring rows.
const OVERLAP: f64 = 1.3;

/// The maximum recomputation factor of a reduction.
const OVERLAP_OF_TERMS: f64 = 1.125;

/// The maximum size in L2 caches of a block whose loop is shared with reductions over its rows.
/// Each block reads and writes the results of these again, so larger blocks are profitable even in
/// the next cache.
const SHARED_ROOM: i64 = 3;

/// The number of units after the last one of a block to search for these reductions.
const MOST_LATER: usize = 8;

/// The maximum number of units of a block: large programs may have a thousand stages.
const MOST_UNITS: usize = 32;

/// Finds the blocks of a program among unscheduled stages. No stage is in two blocks.
pub(crate) fn find(draft: &ScheduleState, chains: &[Chain], goal: &Goal<Cpu>) -> Vec<Block> {
    let mut found: Vec<Block> = columns::find(draft, goal).into_iter().collect();
    let taken = found.iter().flat_map(|block| block.stages.iter().cloned()).collect();
    found.extend(of_rows(draft, chains, goal, taken));
    found
}

/// Finds blocks of rows of stages that are in no other block.
fn of_rows(
    draft: &ScheduleState,
    chains: &[Chain],
    goal: &Goal<Cpu>,
    mut taken: Vec<String>,
) -> Vec<Block> {
    let units = units(draft, chains);
    let bytes: Vec<i64> = units.iter().map(|unit| bytes(draft, unit, chains)).collect();
    let readers: Vec<Vec<String>> =
        units.iter().map(|unit| readers(draft, unit.root(chains))).collect();
    let mut found = Vec::new();
    for last in (0..units.len()).rev() {
        let first = (last + 1).saturating_sub(MOST_UNITS);
        let all = bytes[first..=last].iter().copied().fold(0, i64::saturating_add);
        // Without row chains between products, blocks help only if the data exceeds the cache.
        let pays = !chains.is_empty() || all > room(goal);
        if !pays || taken.contains(units[last].root(chains)) {
            continue;
        }
        let end = units.len().min(last + 1 + MOST_LATER);
        // Attempts use a draft of these stages alone.
        let stages = units[first..end].iter().flat_map(|unit| unit.stages(chains));
        let nest = only(&draft.nest, stages);
        let alone = ScheduleState { nest, schedule: draft.schedule.clone() };
        let (readers, later) = (&readers[first..=last], &units[last + 1..end]);
        let program = Stages { draft: &alone, chains, readers, later };
        if let Some(block) = block(&program, &units[first..=last], &taken, goal) {
            taken.extend(block.stages.iter().cloned());
            found.push(block);
        }
    }
    found.reverse();
    found
}

/// Candidate stages: their draft, their chains, the readers of each unit's root, and the units
/// after them.
struct Stages<'a> {
    draft: &'a ScheduleState,
    chains: &'a [Chain],
    readers: &'a [Vec<String>],
    later: &'a [Unit],
}

/// The stages that read a stage.
fn readers(draft: &ScheduleState, stage: &str) -> Vec<String> {
    let store = store_of(&draft.nest, stage);
    store.map(|store| reader_names(&draft.nest, store.buffer)).unwrap_or_default()
}

/// The maximum bytes of a block.
fn room(goal: &Goal<Cpu>) -> i64 {
    goal.target.caches().l2 / 2
}

/// The bytes of all stages of a unit.
fn bytes(draft: &ScheduleState, unit: &Unit, chains: &[Chain]) -> i64 {
    let of_stage = |stage: &String| {
        store_of(&draft.nest, stage).map_or(0, |store| draft.nest.buffer(store.buffer).bytes())
    };
    unit.stages(chains).into_iter().map(of_stage).fold(0, i64::saturating_add)
}

/// The chains and the remaining stages, in program order.
fn units(draft: &ScheduleState, chains: &[Chain]) -> Vec<Unit> {
    let mut found = Vec::new();
    for (root, reduction) in with_epilogues(&draft.nest) {
        match chains.iter().position(|chain| chain.has(&root)) {
            Some(place) if chains[place].root == root && chains[place].siblings.is_empty() => {
                found.push(Unit::Chain(place));
            }
            // The other stages of a chain are part of it already.
            Some(_) => {}
            None => found.push(Unit::Group { root, reduction }),
        }
    }
    // Unrolled stages and recurrences are scheduled by rules.
    let is_free = |stage: &String| !is_written_out(draft, stage) && !is_in_order(draft, stage);
    found.retain(|unit| unit.stages(chains).into_iter().all(is_free));
    found
}

/// The block that ends with the last of some units, in the innermost row loop that holds others.
fn block(
    program: &Stages<'_>,
    units: &[Unit],
    taken: &[String],
    goal: &Goal<Cpu>,
) -> Option<Block> {
    let Stages { draft, chains, .. } = *program;
    let last = units.last()?;
    let root = last.root(chains);
    let accesses = Accesses::of(&draft.nest, root)?;
    let spatial: Vec<&Axis> = accesses.of_role(Role::Spatial).collect();
    let depths = match last {
        Unit::Chain(place) => {
            let row = spatial.iter().position(|axis| axis.name == chains[*place].row)?;
            row..row + 1
        }
        // The last spatial loop is vectorized.
        Unit::Group { .. } => 0..spatial.len().saturating_sub(1),
    };
    let try_at = |depth: usize| {
        let row = spatial.get(depth)?;
        let around: i64 = spatial[..depth].iter().map(|axis| axis.extent).product();
        let row_reductions = row_reductions(program, units, (row, &spatial[..depth]), taken, goal);
        let fits = |rows: &i64| {
            let host = BlockLoop { root, row: &row.name, extent: row.extent, around, rows: *rows };
            host.units_with(program, units, row_reductions.clone(), taken, goal)
        };
        // Every worker gets at least one block.
        let suits = |rows: &i64| {
            *rows <= row.extent && around * ((row.extent + rows - 1) / rows) >= goal.workers
        };
        let sizes = SIZES.into_iter().filter(suits);
        let found: Vec<(i64, BlockContents)> =
            sizes.filter_map(|rows| Some((rows, fits(&rows)?))).collect();
        // The starting value comes first: the most stages, then the largest size up to a limit.
        let start = |rows: i64, BlockContents { units, row_reductions }: &BlockContents| {
            let limit = if has_product(draft, units) { START } else { STENCIL_START };
            (units.len() + row_reductions.len(), -(rows - limit).max(0), rows)
        };
        let (first, inside) = found.iter().max_by_key(|(rows, inside)| start(*rows, inside))?;
        let others = found.iter().filter(|(rows, other)| rows != first && other == inside);
        let sizes = std::iter::once(*first).chain(others.map(|(rows, _)| *rows));
        let shapes = sizes.map(Shape::by_rows).collect();
        let BlockContents { units, row_reductions } = inside.clone();
        let stages = units.iter().flat_map(|unit| unit.stages(chains));
        let stages = stages
            .chain(row_reductions.iter().map(|reduction| &reduction.stage))
            .cloned()
            .collect();
        let (root, row) = (root.clone(), row.name.clone());
        let (columns, parameter) = (None, 0);
        let mut block =
            Block { root, row, units, row_reductions, columns, stages, shapes, parameter };
        add_tiles(&mut block, draft, chains, goal);
        Some(block)
    };
    depths.rev().find_map(try_at)
}

/// The reductions that may share the row loop of the last unit inside the loops around it. Blocks
/// with them are not parallel.
fn row_reductions(
    program: &Stages<'_>,
    units: &[Unit],
    (row, around): (&Axis, &[&Axis]),
    taken: &[String],
    goal: &Goal<Cpu>,
) -> Vec<RowReduction> {
    let Stages { draft, chains, later, .. } = *program;
    let is_for_all = around.first().is_some_and(|axis| is_for_all(axis.extent, goal));
    let Some((last, before)) = units.split_last() else { return Vec::new() };
    if goal.workers > 1 && !is_for_all || !is_product_unit(draft, last) {
        return Vec::new();
    }
    let free = before.iter().chain(later).filter(|unit| !taken.contains(unit.root(chains)));
    free.filter_map(|unit| RowReduction::of(draft, unit, row, around)).collect()
}

/// Adds shapes with register tiles of several rows to a block of stencils; they come first if they
/// cost little.
fn add_tiles(block: &mut Block, draft: &ScheduleState, chains: &[Chain], goal: &Goal<Cpu>) {
    let is_tiled = match block.units.last() {
        // Row-wise reductions need whole rows and are in no tile.
        Some(Unit::Chain(place)) => {
            let mut others = chains[*place].stages.iter().filter(|stage| stage.name != block.root);
            others.all(|stage| stage.in_tile)
        }
        _ => true,
    };
    if !is_tiled || has_product(draft, &block.units) {
        return;
    }
    let by_rows = block.shapes.clone();
    for rows in tiles::ROWS {
        let Some(first) = by_rows.first().map(|first| Shape { tile: rows, ..*first }) else {
            return;
        };
        let Some(pays) = tiles::pay(draft, block, first, chains, goal) else { continue };
        let tiles = by_rows.iter().filter(|shape| rows <= shape.rows);
        let tiles = tiles.map(|shape| Shape { tile: rows, ..*shape });
        let is_first = pays && block.shapes.first().is_some_and(|first| first.tile == 1);
        let at = if is_first { 0 } else { block.shapes.len() };
        block.shapes.splice(at..at, tiles);
    }
}

/// The contents of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BlockContents {
    units: Vec<Unit>,
    row_reductions: Vec<RowReduction>,
}

/// A loop of a root that is split into blocks.
struct BlockLoop<'a> {
    root: &'a str,
    row: &'a str,
    extent: i64,
    /// The iterations of the enclosing loops.
    around: i64,
    rows: i64,
}

impl BlockLoop<'_> {
    /// The contents of a block that includes reductions over its rows, if these read something of
    /// it.
    fn units_with(
        &self,
        program: &Stages<'_>,
        units: &[Unit],
        row_reductions: Vec<RowReduction>,
        taken: &[String],
        goal: &Goal<Cpu>,
    ) -> Option<BlockContents> {
        let inside = self.units(program, units, row_reductions, taken, goal)?;
        let stages = inside.units.iter().flat_map(|unit| unit.stages(program.chains));
        let stages: Vec<&String> = stages.collect();
        let gains = |reduction: &RowReduction| {
            stages.iter().any(|stage| readers(program.draft, stage).contains(&reduction.stage))
        };
        match inside.row_reductions.iter().all(gains) {
            true => Some(inside),
            false => {
                let some = inside
                    .row_reductions
                    .iter()
                    .filter(|reduction| gains(reduction))
                    .cloned()
                    .collect();
                self.units(program, units, some, taken, goal)
            }
        }
    }

    /// The stages that fit a block with little recomputation; `None` if blocking saves nothing.
    fn units(
        &self,
        program: &Stages<'_>,
        units: &[Unit],
        mut row_reductions: Vec<RowReduction>,
        taken: &[String],
        goal: &Goal<Cpu>,
    ) -> Option<BlockContents> {
        let Stages { draft, chains, .. } = *program;
        let (last, before) = units.split_last()?;
        let mut fused = draft.clone();
        let mut split = Split::new(self.row, &[self.rows]).tail(Tail::Peel);
        let at = format!("{}.block", self.row);
        split.names = vec![at.clone(), format!("{}.row", self.row)];
        if !fused.step(self.root, split) {
            return None;
        }
        row_reductions.retain(|reduction| reduction.join(&mut fused, self.root, &at, self.rows));
        let room = match row_reductions.is_empty() {
            true => room(goal),
            false => SHARED_ROOM * goal.target.caches().l2,
        };
        let mut held = BlockBytes::default();
        match last {
            Unit::Chain(place) => {
                let row = format!("{}.row", self.row);
                chains[*place].place(&mut fused, &row).ok()?;
            }
            Unit::Group { .. } => held = self.reduction(draft, &mut fused, last)?,
        }
        let mut inside: Vec<&Unit> = vec![last];
        for (unit, readers) in before.iter().zip(program.readers).rev() {
            let root = unit.root(chains);
            let Some(buffer) = store_of(&draft.nest, root).map(|store| store.buffer) else {
                continue;
            };
            let own = inside.iter().flat_map(|unit| unit.stages(chains));
            let own: Vec<&String> =
                own.chain(row_reductions.iter().map(|reduction| &reduction.stage)).collect();
            let is_ours = !readers.is_empty() && readers.iter().all(|reader| own.contains(&reader));
            let owner = draft.nest.buffer(buffer).owner;
            let is_taken = taken.contains(root) || own.contains(&root);
            if !is_ours || is_taken || owner != Owner::Intermediate {
                continue;
            }
            let mut trial = fused.clone();
            let more = match unit {
                Unit::Chain(place) => {
                    let more = self.place(draft, &mut trial, root, 1.0);
                    let (chain, row) = (&chains[*place], &chains[*place].row);
                    let more = more.filter(|_| has_whole_rows(draft, &trial, chain));
                    more.filter(|_| chain.place(&mut trial, row).is_ok())
                }
                Unit::Group { .. } => {
                    let more = self.place(draft, &mut trial, root, overlap(draft, unit));
                    more.zip(self.reduction(draft, &mut trial, unit)).map(|(a, b)| a.and(b))
                }
            };
            let Some(more) = more.map(|more| more.and(held)) else { continue };
            // Other units may still fit.
            if more.bytes > room {
                continue;
            }
            held = more;
            inside.push(unit);
            fused = trial;
        }
        let panels =
            inside.iter().map(|unit| panel_bytes(draft, unit, self.row)).max().unwrap_or(0);
        if panels > PANELS * goal.target.caches().l2 || inside.len() < 2 {
            return None;
        }
        let inside: Vec<Unit> = inside.into_iter().rev().cloned().collect();
        let has_chain = inside.iter().any(|unit| matches!(unit, Unit::Chain(_)));
        // Blocking does not help data that fits a cache anyway.
        let pays = if has_product(draft, &inside) { has_chain } else { held.whole > room };
        pays.then_some(BlockContents { units: inside, row_reductions })
    }

    /// Computes a stage inside the block; `None` if that is refused or recomputes too much.
    fn place(
        &self,
        draft: &ScheduleState,
        trial: &mut ScheduleState,
        stage: &str,
        most: f64,
    ) -> Option<BlockBytes> {
        let buffer = store_of(&draft.nest, stage)?.buffer;
        let at = format!("{}.block", self.row);
        let place = ComputeAt { consumer: self.root.to_owned(), at };
        if !trial.step(stage, place) || self.repeated(draft, trial, buffer) > most {
            return None;
        }
        let bytes = |draft: &ScheduleState| draft.nest.buffer(buffer).bytes();
        Some(BlockBytes { bytes: bytes(trial), whole: bytes(draft) })
    }

    /// Also moves a reduction that is not a product into the block: it has no tiles to share.
    fn reduction(
        &self,
        draft: &ScheduleState,
        trial: &mut ScheduleState,
        unit: &Unit,
    ) -> Option<BlockBytes> {
        match unit {
            Unit::Group { reduction: Some(reduction), .. } if !is_product_unit(draft, unit) => {
                self.place(draft, trial, reduction, OVERLAP_OF_TERMS)
            }
            _ => Some(BlockBytes::default()),
        }
    }

    /// The recomputation factor of a buffer, without the elements beyond the last block.
    fn repeated(&self, draft: &ScheduleState, trial: &ScheduleState, buffer: BufferId) -> f64 {
        let blocks = (self.extent + self.rows - 1) / self.rows;
        let elements = |draft: &ScheduleState| draft.nest.buffer(buffer).elements() as f64;
        let computed = elements(trial) * self.around as f64 * blocks as f64;
        let rounded = elements(draft) * (blocks * self.rows) as f64 / self.extent as f64;
        // Rounded, so that no recomputation yields exactly 1.
        (computed / rounded.max(1.0) * 1e9).round() / 1e9
    }
}

/// Whether a block computes whole rows of a chain, so that per-row values are computed once.
fn has_whole_rows(draft: &ScheduleState, trial: &ScheduleState, chain: &Chain) -> bool {
    let inner = |draft: &ScheduleState| {
        let accesses = Accesses::of(&draft.nest, &chain.root)?;
        let extents = accesses.axes.iter().skip_while(|axis| axis.name != chain.row).skip(1);
        Some(extents.map(|axis| axis.extent).collect::<Vec<_>>())
    };
    inner(draft) == inner(trial)
}

/// The bytes of a block's intermediates, and of the same stages without blocking.
#[derive(Debug, Clone, Copy, Default)]
struct BlockBytes {
    bytes: i64,
    whole: i64,
}

impl BlockBytes {
    fn and(self, other: Self) -> Self {
        let bytes = self.bytes.saturating_add(other.bytes);
        Self { bytes, whole: self.whole.saturating_add(other.whole) }
    }
}

/// The maximum recomputation factor of a stage.
fn overlap(draft: &ScheduleState, unit: &Unit) -> f64 {
    let Unit::Group { root, .. } = unit else { return 1.0 };
    if is_product_unit(draft, unit) {
        return 1.0;
    }
    if is_movement(draft, root) { OVERLAP } else { OVERLAP_OF_TERMS }
}

fn has_product(draft: &ScheduleState, units: &[Unit]) -> bool {
    units.iter().any(|unit| is_product_unit(draft, unit))
}

/// The bytes that a product reads again for every block: the operands that do not move with its
/// rows, as far as they belong to one iteration of the enclosing loops.
fn panel_bytes(draft: &ScheduleState, unit: &Unit, row: &str) -> i64 {
    let Unit::Group { root, reduction } = unit else { return 0 };
    let stage = reduction.as_ref().unwrap_or(root);
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return 0 };
    // Another stage may name its row loop differently; then the second last spatial loop counts.
    let spatial: Vec<&Axis> = accesses.of_role(Role::Spatial).collect();
    let named = spatial.iter().position(|axis| axis.name == row);
    let place = named.unwrap_or(spatial.len().saturating_sub(2));
    let Some((row, around)) = spatial.get(place).map(|row| (row, &spatial[..place])) else {
        return 0;
    };
    let bytes = |read: &Access| {
        let moves = around.iter().filter(|axis| read.stride(axis) != Some(0));
        let parts: i64 = moves.map(|axis| axis.extent.max(1)).fold(1, i64::saturating_mul);
        draft.nest.buffer(read.buffer).bytes() / parts
    };
    let still = accesses.reads.iter().filter(|read| read.stride(row) == Some(0));
    still.map(bytes).max().unwrap_or(0)
}
