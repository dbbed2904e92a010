//! Ranking of the most promising points, by rules and the cost model.
//!
//! The first point is the default schedule; the others are what to measure first.
//!
//! The rules follow the measurements in docs/performance.md: register tiles that fill the
//! registers, constants laid out in panels as wide as a tile, widely strided rows packed once,
//! reduction loops in cache-sized blocks. The model chooses the vector loop, the row loop and the
//! blocks.

use tensorwright_space::Point;
use tensorwright_space::parameter::Domain;

use crate::cpu::cost::{self, Constants, TERMS, cycles};
use crate::cpu::group::{Group, Packable, Vector};
use crate::cpu::knobs::outer_order::outermost;
use crate::cpu::knobs::parallel::share_outermost;
use crate::cpu::knobs::unroll::{rounded, whole_window};
use crate::cpu::knobs::{self, store};
use crate::cpu::register_tile::{Along, register_tiles};
use crate::cpu::rows::{Chain, RowKnob};
use crate::cpu::rules::PACK_ROW_BYTES;
use crate::cpu::sketch::CpuSketch;
use crate::cpu::tiling::{PackAt, StoreBy, Tiling};
use crate::sketch::Values;
use crate::stages::operand::{Mover, Operand};
use crate::stages::split::Split;

/// The number of register tiles considered per pair of loops.
const MOST_TILES: usize = 4;

/// The number of vectors along a reduction loop that makes up for partially filled ones.
const MANY_VECTORS: i64 = 6;

/// The candidate tile heights in rows for a sliding window.
const WINDOW_ROWS: [i64; 3] = [8, 12, 16];

/// The vectors of a register tile for a sliding window.
const WINDOW_VECTORS: i64 = 4;

/// The most promising points, best first: the best ones of the most expensive group, combined with
/// the best one of all others. They obey all rules; primitives may still refuse them.
pub(crate) fn ranked(sketch: &CpuSketch, base: Values<'_>, count: usize) -> Vec<Point> {
    let mut points = by_groups(sketch, base, count);
    let first = points.first().cloned();
    let fused = |chain: &&Chain| sketch.row_tiling(chain, base).is_fused;
    let chains = sketch.chains.iter().filter(fused);
    let others =
        first.iter().flat_map(|first| chains.clone().flat_map(|c| by_rows(sketch, c, first)));
    let mut others: Vec<Point> = others.collect();
    for (block, first) in sketch.blocks.iter().zip(first.iter().cycle()) {
        let shapes = (1..block.shapes.len() as u32).rev();
        others.extend(shapes.map(|rank| first.with(block.parameter, rank)));
    }
    points.splice(1.min(points.len())..1.min(points.len()), others);
    // The model cannot rank fusion of chains and blocks: points without it are measured, too.
    let mut apart = base.ranks.to_vec();
    let rows = chains.flat_map(Chain::knobs).filter(|(_, knob)| *knob == RowKnob::Rows);
    rows.for_each(|(at, _)| apart[at] = 1);
    sketch.blocks.iter().for_each(|block| apart[block.parameter] = block.shapes.len() as u32);
    if apart != base.ranks {
        let apart = by_groups(sketch, Values { ranks: &apart, ..base }, 2);
        points.splice(4.min(points.len())..4.min(points.len()), apart);
    }
    points.truncate(count.max(1));
    points
}

/// Variants of a point with other vector counts in the rows of a chain.
fn by_rows(sketch: &CpuSketch, chain: &Chain, first: &Point) -> Vec<Point> {
    let with = |wanted: i64| {
        let mut point = first.clone();
        for (at, knob) in chain.knobs() {
            let domain = sketch.parameters.get(at).map(tensorwright_space::Parameter::domain);
            if let (RowKnob::Vectors(_), Some(Domain::Discrete(numbers))) = (knob, domain) {
                let rank = numbers.values().iter().rposition(|count| *count <= wanted);
                point = point.with(at, rank.unwrap_or(0) as u32);
            }
        }
        point
    };
    [2, 8, 1].into_iter().map(with).filter(|point| point != first).collect()
}

/// The most promising points of tiled groups.
fn by_groups(sketch: &CpuSketch, base: Values<'_>, count: usize) -> Vec<Point> {
    let mut best = base.ranks.to_vec();
    let mut longest: Option<(f64, &Group, Vec<Vec<u32>>)> = None;
    let alone = |group: &&Group| !sketch.is_together(&group.root, base);
    for group in sketch.groups.iter().filter(alone) {
        let builder = Builder::new(sketch, group, &best);
        let mut found: Vec<(f64, Vec<u32>)> = Vec::new();
        for ranks in builder.candidates() {
            let cost = estimate(sketch, group, Values { ranks: &ranks, free: base.free });
            if cost.is_finite() && found.iter().all(|(_, known)| *known != ranks) {
                found.push((cost, ranks));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.truncate(count.max(1));
        let Some((cost, first)) = found.first() else { continue };
        best.clone_from(first);
        if longest.as_ref().is_none_or(|(most, ..)| cost > most) {
            longest = Some((*cost, group, found.into_iter().map(|(_, ranks)| ranks).collect()));
        }
    }
    let Some((_, group, variants)) = longest else { return vec![Point::new(best)] };
    let own = group.parameters.clone();
    let point = |variant: Vec<u32>| {
        let mut ranks = best.clone();
        ranks[own.clone()].copy_from_slice(&variant[own.clone()]);
        Point::new(ranks)
    };
    variants.into_iter().take(count).map(point).collect()
}

/// The estimated cycles of a program; infinite if a rule forbids the values.
pub(crate) fn estimate_all(sketch: &CpuSketch, values: Values<'_>) -> f64 {
    let alone = sketch.groups.iter().filter(|group| !sketch.is_together(&group.root, values));
    let alone: f64 = alone.map(|group| estimate(sketch, group, values)).sum();
    // Products in a block have the same kind of tiles.
    let in_block = |group: &&Group| {
        sketch.blocked(&group.root, values).is_some() && sketch.fused(&group.root, values).is_none()
    };
    let products = sketch.groups.iter().filter(in_block);
    let alone = alone + products.map(|group| estimate(sketch, group, values)).sum::<f64>();
    alone + sketch.chains.iter().map(|chain| estimate_rows(sketch, chain, values)).sum::<f64>()
}

/// The estimated cycles of a chain that is computed row by row.
fn estimate_rows(sketch: &CpuSketch, chain: &Chain, values: Values<'_>) -> f64 {
    Constants::default().cycles(&row_terms(sketch, chain, values))
}

/// The model terms of a chain computed row by row: its rows come from memory once, for the stage
/// that reads the most.
pub(crate) fn row_terms(
    sketch: &CpuSketch,
    chain: &Chain,
    values: Values<'_>,
) -> [f64; TERMS.len()] {
    let mut sum = [0.0; TERMS.len()];
    if !sketch.row_tiling(chain, values).is_fused {
        return sum;
    }
    for group in sketch.groups.iter().filter(|group| chain.has(&group.root)) {
        let terms = cost::terms(group, &Tiling::plain(group), &sketch.goal);
        for ((sum, term), name) in sum.iter_mut().zip(terms).zip(TERMS) {
            *sum = if name == "far bytes" { sum.max(term) } else { *sum + term };
        }
    }
    sum
}

/// The estimated cycles of a group; infinite if a rule forbids it.
pub(crate) fn estimate(sketch: &CpuSketch, group: &Group, values: Values<'_>) -> f64 {
    let tiling = sketch.tiling(group, values);
    match knobs::check(group, &tiling, &sketch.goal, usize::MAX) {
        Ok(()) => cycles(group, &tiling, &sketch.goal),
        Err(_) => f64::INFINITY,
    }
}

/// A register tile, and the block of terms around it.
#[derive(Debug, Clone, Copy)]
struct Choice {
    /// The vectorized loop.
    axis: usize,
    lanes: i64,
    vectors: i64,
    row: Option<usize>,
    rows: i64,
    /// The blocked reduction loop, and its block size.
    block: Option<(usize, i64)>,
    /// Whether operands shared by all vectors are packed.
    copies_rows: bool,
}

/// Builds the points of a group from choices.
struct Builder<'a> {
    sketch: &'a CpuSketch,
    group: &'a Group,
    /// The values of all parameters, and the resulting tiling.
    ranks: &'a [u32],
    base: Tiling,
}

impl<'a> Builder<'a> {
    fn new(sketch: &'a CpuSketch, group: &'a Group, ranks: &'a [u32]) -> Self {
        let base = sketch.tiling(group, Values { ranks, free: &[] });
        Self { sketch, group, ranks, base }
    }

    fn candidates(&self) -> Vec<Vec<u32>> {
        let mut all = vec![self.ranks.to_vec()];
        let along_terms: Vec<Vec<u32>> =
            self.group.vectors.iter().flat_map(|vector| self.along_terms(*vector)).collect();
        for vector in &self.group.vectors {
            let Vector::Spatial { axis, lanes } = *vector else { continue };
            if self.must_turn(axis) && !self.must_turn_always() {
                continue;
            }
            // Masked accumulators are not kept in registers.
            if !along_terms.is_empty() && self.is_few(axis, lanes) {
                continue;
            }
            for (row, rows, vectors) in self.tiles(axis, lanes) {
                let (block, copies_rows) = (None, false);
                let choice = Choice { axis, lanes, vectors, row, rows, block, copies_rows };
                all.push(self.point(self.tiling(choice)));
                if self.group.packs.iter().any(|pack| self.is_scattered_row(pack, axis)) {
                    all.push(self.point(self.tiling(Choice { copies_rows: true, ..choice })));
                }
                for block in self.blocks(vectors * lanes) {
                    all.push(self.point(self.tiling(Choice { block: Some(block), ..choice })));
                }
            }
        }
        all.extend(along_terms);
        all
    }

    /// Whether vectors along a loop need a strided operand that is not laid out ahead of time:
    /// transposing it at every call costs more than it gains.
    fn must_turn(&self, axis: usize) -> bool {
        self.group.reads.iter().any(|read| {
            let pack = self.group.packs.iter().find(|pack| pack.tensor == read.tensor);
            let laid = pack.is_some_and(|pack| pack.is_constant);
            !matches!(read.spatial[axis], Some(0 | 1)) && !laid
        })
    }

    /// Whether that holds for every loop.
    fn must_turn_always(&self) -> bool {
        self.group.vectors.iter().all(|vector| match *vector {
            Vector::Spatial { axis, .. } => self.must_turn(axis),
            _ => true,
        })
    }

    /// Whether an operand is invariant along the vectors and widely strided along the terms: each
    /// term is in another cache line and page.
    fn is_scattered_row(&self, pack: &Packable, axis: usize) -> bool {
        let read = self.group.reads.iter().find(|read| read.tensor == pack.tensor);
        let far = |read: &Operand| {
            let longest = (0..self.group.reduce.len())
                .max_by_key(|place| self.group.reduce[*place].axis.extent);
            let stride = longest.and_then(|place| read.reduce[place]).unwrap_or(0);
            stride.saturating_mul(read.element_bytes) >= PACK_ROW_BYTES / 2
        };
        read.is_some_and(|read| read.spatial[axis] == Some(0) && far(read))
    }

    /// Whether an operand is strided along the vectors.
    fn is_turned(&self, pack: &Packable, axis: usize) -> bool {
        let mut reads = self.group.reads.iter().filter(|read| read.tensor == pack.tensor);
        pack.dimension_of[axis].is_some()
            && reads.any(|read| !matches!(read.spatial[axis], Some(0 | 1)))
    }

    /// Whether the operands along the vectors are reused along another loop.
    fn shares_panel(&self, vector: usize, axis: usize) -> bool {
        let panels = self.group.reads.iter().filter(|read| read.spatial[vector] != Some(0));
        axis != vector && panels.into_iter().all(|read| read.spatial[axis] == Some(0))
    }

    /// The candidate row loops, with their least wasteful tiles: rows and vectors.
    fn tiles(&self, vector: usize, lanes: i64) -> Vec<(Option<usize>, i64, i64)> {
        let extent = |axis: usize| self.group.spatial[axis].axis.extent.max(1);
        let shares = |axis: &usize| {
            *axis != vector
                && extent(*axis) > 1
                && self.group.reads.iter().any(|read| read.spatial[*axis] == Some(0))
        };
        let mut found = vec![(None, 1, 1)];
        if self.group.reduce.is_empty() {
            return found;
        }
        for row in (0..self.group.spatial.len()).filter(shares) {
            let along = Along { vector: extent(vector), rows: extent(row), lanes };
            let best = register_tiles(&self.sketch.goal.target, along).into_iter().take(MOST_TILES);
            found.extend(best.map(|tile| (Some(row), tile.rows, tile.vectors)));
        }
        if self.writes_window(vector) {
            found.push((None, 1, WINDOW_VECTORS));
        }
        let rows = (0..self.group.spatial.len()).filter(|row| self.moves_window(vector, *row));
        found.extend(rows.flat_map(|row| WINDOW_ROWS.map(|rows| (Some(row), rows, 1))));
        found
    }

    /// Whether vectors along a loop unroll the whole window.
    fn writes_window(&self, vector: usize) -> bool {
        // A read clamped at the borders still counts as a row.
        let is_row = |read: &Operand| {
            let along = |movers: &Vec<Mover>| movers.contains(&Mover::Spatial(vector, 1));
            read.moved_by.last().is_some_and(along)
        };
        self.group.reads.iter().all(is_row) && whole_window(self.group).is_some()
    }

    /// Whether that window moves with another loop, whose iterations then share reads.
    fn moves_window(&self, vector: usize, row: usize) -> bool {
        let term = self.group.reduce.len().saturating_sub(1);
        row != vector && self.writes_window(vector) && self.group.is_window(row, term)
    }

    /// Blocks of the longest reduction loop that keep a panel of a tile's width in the L1 or L2
    /// cache.
    fn blocks(&self, width: i64) -> Vec<(usize, i64)> {
        let extents = self.group.reduce.iter().map(|split| split.axis.extent.max(1));
        let Some((axis, longest)) = extents.clone().enumerate().max_by_key(|(_, n)| *n) else {
            return Vec::new();
        };
        let others: i64 = extents.product::<i64>() / longest;
        let row = width.saturating_mul(others).saturating_mul(self.group.element_bytes);
        let caches =
            [self.sketch.goal.target.caches().l1 / 2, self.sketch.goal.target.caches().l2 / 2];
        let blocks = caches.map(|bytes| (axis, bytes / row.max(1)));
        blocks.into_iter().filter(|(_, block)| (8..longest).contains(block)).collect()
    }

    /// Whether vectors along a loop are mostly partial.
    fn is_few(&self, axis: usize, lanes: i64) -> bool {
        let extent = self.group.spatial[axis].axis.extent.max(1);
        extent < 2 * lanes && extent % lanes != 0
    }

    /// Points with vectorized reduction loops, for products with too few rows to fill vectors: no
    /// packing, and all vectors are full.
    fn along_terms(&self, vector: Vector) -> Vec<Vec<u32>> {
        let Vector::Reduce { axis: terms, lanes } = vector else { return Vec::new() };
        let extent = |axis: usize| self.group.spatial[axis].axis.extent.max(1);
        let terms = self.group.reduce[terms].axis.extent;
        // Remaining terms are added one by one.
        if !self.must_turn_always() || terms % lanes != 0 && terms < MANY_VECTORS * lanes {
            return Vec::new();
        }
        let stays = |axis: usize| self.group.reads.iter().any(|read| read.spatial[axis] == Some(0));
        let shared: Vec<usize> = (0..self.group.spatial.len())
            .filter(|axis| extent(*axis) > 1 && stays(*axis))
            .collect();
        let mut found = Vec::new();
        if !shared.iter().any(|axis| self.is_few(*axis, lanes)) {
            return found;
        }
        let pairs = shared.iter().flat_map(|row| shared.iter().map(move |c| (*row, *c)));
        for (row, column) in pairs {
            // A tile along one loop alone has single columns.
            let columns = if row == column { 1 } else { extent(column) };
            let along = Along { vector: columns, rows: extent(row), lanes: 1 };
            for tile in register_tiles(&self.sketch.goal.target, along).iter().take(MOST_TILES) {
                let mut tiling = self.base.clone();
                tiling.vector = vector;
                for (axis, split) in self.group.spatial.iter().enumerate() {
                    let inner = match axis {
                        axis if axis == row => tile.rows,
                        axis if axis == column => tile.vectors,
                        _ => 1,
                    };
                    tiling.spatial[axis] = split.nearest(&[1, inner]);
                }
                tiling.packs.fill(PackAt::Nowhere);
                tiling.store = StoreBy::Direct;
                tiling.unroll = 1;
                // The operand with more rows is streamed once.
                outermost(&mut tiling, if extent(row) < columns { column } else { row });
                found.push(self.point(tiling.settle(self.group)));
            }
        }
        found
    }

    /// The parameter values nearest to a tiling.
    fn point(&self, tiling: Tiling) -> Vec<u32> {
        let (sketch, group) = (self.sketch, self.group);
        let mut ranks = self.ranks.to_vec();
        sketch.write(group, &tiling, &mut ranks);
        // Decisions without a parameter stay unchanged.
        let mut tiling = sketch.tiling(group, Values { ranks: &ranks, free: &[] });
        share_outermost(&mut tiling, group, &sketch.goal);
        sketch.write(group, &tiling, &mut ranks);
        ranks
    }

    fn tiling(&self, choice: Choice) -> Tiling {
        let group = self.group;
        let mut tiling = self.base.clone();
        tiling.vector = Vector::Spatial { axis: choice.axis, lanes: choice.lanes };
        for (axis, split) in group.spatial.iter().enumerate() {
            let inner = match axis {
                axis if axis == choice.axis => choice.vectors * choice.lanes,
                axis if Some(axis) == choice.row => choice.rows,
                _ => 1,
            };
            let all = (split.axis.extent + inner - 1) / inner;
            let middle = match self.shares_panel(choice.axis, axis) {
                // The vectors iterate inside a packed panel that they share.
                false if choice.copies_rows && axis == choice.axis => all,
                true if choice.copies_rows => self.copied_tiles(choice, axis).min(all),
                // The loops that share a panel iterate inside a block of it.
                true if choice.block.is_some() => all,
                _ => 1,
            };
            tiling.spatial[axis] = split.nearest(&[middle, inner]);
        }
        for (axis, split) in group.reduce.iter().enumerate() {
            let inner = match choice.block {
                Some((blocked, block)) if blocked == axis => block,
                _ => split.axis.extent,
            };
            tiling.reduce[axis] = split.nearest(&[inner]);
        }
        let blocks_first = choice.block.is_some() && !tiling.sums_inside(group);
        tiling.middle_order = self.order_of_blocks(blocks_first);
        self.pack(&mut tiling, choice);
        let last = group.reduce.last().map_or(1, |split| split.axis.extent);
        tiling.unroll = match last {
            _ if self.writes_window(choice.axis) => last,
            16.. => 2,
            _ => 1,
        };
        if let (Some(parts), Some(axis)) = (rounded(group, &tiling), tiling.reduce_order.last()) {
            tiling.reduce[*axis] = parts;
        }
        if store::is_open(group) {
            tiling.store = self.store(choice);
        }
        tiling
    }

    /// The number of register tiles along a loop that are packed together: as many as a quarter of
    /// the L2 cache holds, along the rows first.
    fn copied_tiles(&self, choice: Choice, axis: usize) -> i64 {
        let terms: i64 = self.group.reduce.iter().map(|split| split.axis.extent.max(1)).product();
        let tile = terms.saturating_mul(choice.rows).saturating_mul(self.group.element_bytes);
        let room = (self.sketch.goal.target.caches().l2 / 4 / tile.max(1)).max(1);
        if Some(axis) == choice.row {
            return room;
        }
        let extent = choice.row.map_or(1, |row| self.group.spatial[row].axis.extent);
        let along_rows = (extent + choice.rows - 1) / choice.rows.max(1);
        let innermost = |other: &usize| {
            *other != axis && Some(*other) != choice.row && self.shares_panel(choice.axis, *other)
        };
        // One more loop, the innermost.
        let is_last = !(axis + 1..self.group.spatial.len()).any(|other| innermost(&other));
        if is_last { (room / along_rows.max(1)).max(1) } else { 1 }
    }

    /// Places the blocks of reduction loops outside the spatial loops, or inside.
    fn order_of_blocks(&self, blocks_first: bool) -> Vec<usize> {
        let of = |splits: &[Split]| splits.iter().filter(|split| split.is_tiled()).count();
        let (results, terms) = (of(&self.group.spatial), of(&self.group.reduce));
        match blocks_first {
            true => (results..results + terms).chain(0..results).collect(),
            false => (0..results + terms).collect(),
        }
    }

    /// Packs widely strided rows if the choice says so; other operands depend on the vectors.
    fn pack(&self, tiling: &mut Tiling, choice: Choice) {
        for (place, pack) in self.group.packs.iter().enumerate() {
            let at = match pack.by_rows(choice.axis) {
                PackAt::Nowhere
                    if choice.copies_rows && self.is_scattered_row(pack, choice.axis) =>
                {
                    PackAt::Middle
                }
                // Gathering every vector repeatedly costs more than transposing a panel once.
                PackAt::Nowhere if self.is_turned(pack, choice.axis) => PackAt::Outer,
                at => at,
            };
            tiling.packs[place] = at;
            if at == PackAt::Outer {
                outermost(tiling, choice.axis);
            }
        }
    }

    /// Transposes tiles whose rows are those of the result.
    fn store(&self, choice: Choice) -> StoreBy {
        let along = self.group.contiguous;
        let turned = along.is_some_and(|along| along != choice.axis)
            && along == choice.row
            && (2..=16).contains(&choice.rows);
        if turned { StoreBy::Transposed } else { StoreBy::Direct }
    }
}
