//! The most promising points of a space, by rules that leave few of them and the cost model that
//! ranks these: what to compile when nothing was measured, and what to measure first.
//!
//! The rules are those of the measurements in docs/performance.md: register tiles of rows by vectors
//! that fill the registers, constants laid out in panels as wide as a tile, panels of rows that are
//! far apart copied once, terms in blocks that a cache holds. The model says which loop becomes the
//! vectors, which the rows, and which blocks to take.

use crate::cpu::rules::PACK_ROW_BYTES;
use tensorwright_target::{Cpu, Goal};

use crate::cpu::cost::{Constants, Operand, cycles};
use crate::cpu::generate::Generated;
use crate::cpu::group::{Group, Pack, Vector};
use crate::cpu::limits;
use crate::cpu::register_tile::{Along, register_tiles};
use crate::cpu::start::{share_outermost, vector_outermost};
use crate::cpu::tiling::{Tiling, Values};
use tensorwright_space::Point;
use tensorwright_space::parameter::Domain;

/// The values of the parameters of a group, by slot.
type Own = Vec<(usize, u32)>;

/// Register tiles that are considered for a pair of loops.
const MOST_TILES: usize = 4;

/// The most promising points, best first: of the group that takes the longest the best ones, of all
/// others the best one. They obey all rules; primitives may still refuse them.
pub(crate) fn ranked(
    made: &Generated,
    goal: &Goal<Cpu>,
    base: &Point,
    free: &[bool],
    count: usize,
) -> Vec<Point> {
    let mut best = base.ranks().to_vec();
    let mut longest: Option<(f64, Vec<Own>)> = None;
    for group in &made.groups {
        let builder = Builder { made, goal, group, base: best.clone() };
        let mut found: Vec<(f64, Vec<u32>)> = Vec::new();
        for ranks in builder.candidates() {
            let cost = estimate(made, group, goal, &Point::new(ranks.clone()), free);
            if cost.is_finite() && found.iter().all(|(_, known)| *known != ranks) {
                found.push((cost, ranks));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some((cost, first)) = found.first() else { continue };
        let slots = group.parameters();
        let own = |ranks: &Vec<u32>| slots.iter().map(|slot| (*slot, ranks[*slot])).collect();
        if longest.as_ref().is_none_or(|(most, _)| cost > most) {
            let variants = found.iter().take(count).map(|(_, ranks)| own(ranks)).collect();
            longest = Some((*cost, variants));
        }
        best = first.clone();
    }
    let Some((_, variants)) = longest else { return vec![Point::new(best)] };
    let point = |variant: Own| {
        let mut ranks = best.clone();
        variant.into_iter().for_each(|(slot, rank)| ranks[slot] = rank);
        Point::new(ranks)
    };
    variants.into_iter().map(point).collect()
}

/// The estimated cycles of a group at a point; infinite where a rule forbids it.
pub(crate) fn estimate(
    made: &Generated,
    group: &Group,
    goal: &Goal<Cpu>,
    point: &Point,
    free: &[bool],
) -> f64 {
    let values = Values { parameters: &made.parameters, point, free };
    let tiling = Tiling::of(group, values);
    let packed = values.packed(group);
    match limits::check(group, &tiling, goal, &packed, usize::MAX) {
        Ok(()) => cycles(group, &tiling, goal, &packed, &Constants::default()),
        Err(_) => f64::INFINITY,
    }
}

/// A register tile, and the block of terms around it.
#[derive(Debug, Clone, Copy)]
struct Choice {
    /// The place of the vector among the group's.
    vector: usize,
    axis: usize,
    lanes: i64,
    vectors: i64,
    row: Option<usize>,
    rows: i64,
    /// The loop over terms that is taken in blocks, and their length.
    block: Option<(usize, i64)>,
    /// Whether operands that the vectors share are copied, for all vectors to use.
    copies_rows: bool,
}

/// Makes points of a group from choices.
struct Builder<'a> {
    made: &'a Generated,
    goal: &'a Goal<Cpu>,
    group: &'a Group,
    base: Vec<u32>,
}

impl Builder<'_> {
    fn candidates(&self) -> Vec<Vec<u32>> {
        let mut all = vec![self.base.clone()];
        for (place, vector) in self.group.vectors.iter().enumerate() {
            let Vector::Spatial { axis, lanes } = *vector else { continue };
            if self.must_turn(axis) && !self.must_turn_always() {
                continue;
            }
            for (row, rows, vectors) in self.tiles(axis, lanes) {
                let (block, copies_rows) = (None, false);
                let choice =
                    Choice { vector: place, axis, lanes, vectors, row, rows, block, copies_rows };
                all.push(self.point(choice));
                if self.group.packs.iter().any(|pack| self.is_scattered_row(pack, axis)) {
                    all.push(self.point(Choice { copies_rows: true, ..choice }));
                }
                for block in self.blocks(vectors * lanes) {
                    all.push(self.point(Choice { block: Some(block), ..choice }));
                }
            }
        }
        all
    }

    /// Whether vectors along a loop need an operand whose elements are apart, and that is not laid out
    /// ahead of all calls: turning it at every call costs more than it brings.
    fn must_turn(&self, axis: usize) -> bool {
        self.group.reads.iter().any(|read| {
            let pack = self.group.packs.iter().find(|pack| pack.tensor == read.tensor);
            let laid = pack.is_some_and(|pack| self.choice_of(pack.slot, "laid").is_some());
            !matches!(read.spatial[axis], Some(0 | 1)) && !laid
        })
    }

    /// Whether that is so for every loop.
    fn must_turn_always(&self) -> bool {
        self.group.vectors.iter().all(|vector| match *vector {
            Vector::Spatial { axis, .. } => self.must_turn(axis),
            _ => true,
        })
    }

    /// The number of a choice of a parameter.
    fn choice_of(&self, slot: usize, name: &str) -> Option<usize> {
        match self.made.parameters[slot].domain() {
            Domain::Categorical(domain) => domain.choices().iter().position(|c| c == name),
            _ => None,
        }
    }

    /// Whether an operand does not move with the vectors, and its terms are far apart: every one of
    /// them is in another line and page.
    fn is_scattered_row(&self, pack: &Pack, axis: usize) -> bool {
        let read = self.group.reads.iter().find(|read| read.tensor == pack.tensor);
        let far = |read: &Operand| {
            let longest = (0..self.group.reduce.len())
                .max_by_key(|place| self.group.reduce[*place].axis.extent);
            let stride = longest.and_then(|place| read.reduce[place]).unwrap_or(0);
            stride.saturating_mul(read.element_bytes) >= PACK_ROW_BYTES / 2
        };
        read.is_some_and(|read| read.spatial[axis] == Some(0) && far(read))
    }

    /// Whether the operands along the vectors stay where they are along another loop.
    fn shares_panel(&self, vector: usize, axis: usize) -> bool {
        let panels = self.group.reads.iter().filter(|read| read.spatial[vector] != Some(0));
        axis != vector && panels.into_iter().all(|read| read.spatial[axis] == Some(0))
    }

    /// The loops whose iterations may share the vectors of a tile, with the tiles that waste the
    /// least: rows and vectors.
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
            let best = register_tiles(&self.goal.target, along).into_iter().take(MOST_TILES);
            found.extend(best.map(|tile| (Some(row), tile.rows, tile.vectors)));
        }
        found
    }

    /// Blocks of the longest loop over terms, so that a panel of a tile's width stays in the first or
    /// in the second cache.
    fn blocks(&self, width: i64) -> Vec<(usize, i64)> {
        let extents = self.group.reduce.iter().map(|split| split.axis.extent.max(1));
        let Some((axis, longest)) = extents.clone().enumerate().max_by_key(|(_, n)| *n) else {
            return Vec::new();
        };
        let others: i64 = extents.product::<i64>() / longest;
        let row = width.saturating_mul(others).saturating_mul(self.group.element_bytes);
        let caches = [self.goal.target.caches().l1 / 2, self.goal.target.caches().l2 / 2];
        let blocks = caches.map(|bytes| (axis, bytes / row.max(1)));
        blocks.into_iter().filter(|(_, block)| (8..longest).contains(block)).collect()
    }

    fn point(&self, choice: Choice) -> Vec<u32> {
        let mut ranks = self.base.clone();
        let group = self.group;
        if let Some(slot) = group.slots.vector {
            ranks[slot] = choice.vector as u32;
        }
        for (axis, split) in group.spatial.iter().enumerate() {
            let inner = match axis {
                axis if axis == choice.axis => choice.vectors * choice.lanes,
                axis if Some(axis) == choice.row => choice.rows,
                _ => 1,
            };
            let all = (split.axis.extent + inner - 1) / inner;
            let middle = match self.shares_panel(choice.axis, axis) {
                // The vectors go around inside a copy that they share.
                false if choice.copies_rows && axis == choice.axis => all,
                true if choice.copies_rows => self.copied_tiles(choice, axis).min(all),
                // The loops that share a panel go around inside a block of it.
                true if choice.block.is_some() => all,
                _ => 1,
            };
            self.set_tile(&mut ranks, split.tile, &[middle, inner]);
        }
        for (axis, split) in group.reduce.iter().enumerate() {
            let inner = match choice.block {
                Some((blocked, block)) if blocked == axis => block,
                _ => split.axis.extent,
            };
            self.set_tile(&mut ranks, split.tile, &[inner]);
        }
        self.order_blocks(&mut ranks, choice);
        self.packs(&mut ranks, choice);
        self.kinds(&mut ranks, choice);
        share_outermost(group, self.made, self.goal, &mut ranks);
        ranks
    }

    /// How many register tiles along a loop are copied together: as much as a quarter of the
    /// second-level cache holds, along the rows first.
    fn copied_tiles(&self, choice: Choice, axis: usize) -> i64 {
        let terms: i64 = self.group.reduce.iter().map(|split| split.axis.extent.max(1)).product();
        let tile = terms.saturating_mul(choice.rows).saturating_mul(self.group.element_bytes);
        let room = (self.goal.target.caches().l2 / 4 / tile.max(1)).max(1);
        if Some(axis) == choice.row {
            return room;
        }
        let extent = choice.row.map_or(1, |row| self.group.spatial[row].axis.extent);
        let along_rows = (extent + choice.rows - 1) / choice.rows.max(1);
        let innermost = |other: &usize| {
            *other != axis && Some(*other) != choice.row && self.shares_panel(choice.axis, *other)
        };
        // One more loop, the innermost of them.
        let is_last = !(axis + 1..self.group.spatial.len()).any(|other| innermost(&other));
        if is_last { (room / along_rows.max(1)).max(1) } else { 1 }
    }

    /// Sets the inner parts of a loop, or those nearest to them that the parameter has.
    fn set_tile(&self, ranks: &mut [u32], slot: Option<usize>, inner: &[i64]) {
        let Some(slot) = slot else { return };
        let Domain::Factorization(splits) = self.made.parameters[slot].domain() else { return };
        let parts = splits.parts().saturating_sub(1);
        let mut wanted: Vec<u64> = vec![1; parts];
        for (to, from) in wanted.iter_mut().rev().zip(inner.iter().rev()) {
            *to = (*from).max(1) as u64;
        }
        while wanted.iter().any(|part| *part > 1) {
            if let Some(rank) = splits.rank_of_inner(&wanted) {
                ranks[slot] = rank;
                return;
            }
            // Fewer of the outermost of them that is not one.
            match wanted.iter_mut().find(|part| **part > 1) {
                Some(part) => *part -= 1,
                None => break,
            }
        }
        ranks[slot] = splits.plain();
    }

    /// Blocks of terms come first, then the loops over results inside of them.
    fn order_blocks(&self, ranks: &mut [u32], choice: Choice) {
        let Some(slot) = self.group.slots.middle_order else { return };
        let Domain::Permutation(orders) = self.made.parameters[slot].domain() else { return };
        let of = |splits: &[crate::cpu::group::Split]| {
            splits.iter().filter(|s| s.tile.is_some()).count()
        };
        let (results, terms) = (of(&self.group.spatial), of(&self.group.reduce));
        let natural: Vec<usize> = (0..results + terms).collect();
        let blocks_first: Vec<usize> = (results..results + terms).chain(0..results).collect();
        let order = if choice.block.is_some() { blocks_first } else { natural };
        ranks[slot] = orders.rank(&order).unwrap_or(0);
    }

    /// Constants are laid out, rows that are far apart are copied; the rest stays where it is.
    fn packs(&self, ranks: &mut [u32], choice: Choice) {
        for pack in &self.group.packs {
            let find = |name: &str| self.choice_of(pack.slot, name);
            let row = pack.shape.last().copied().unwrap_or(1).saturating_mul(pack.element_bytes);
            let moves = pack.dimension_of[choice.axis].is_some();
            let far = moves && row >= PACK_ROW_BYTES;
            let laid = find("laid").filter(|_| moves);
            let copied = choice.copies_rows && self.is_scattered_row(pack, choice.axis);
            let place = match (far, copied) {
                (_, true) => find("middle"),
                (true, _) => find("outer"),
                _ => find("none"),
            };
            ranks[pack.slot] = laid.or(place).unwrap_or(0) as u32;
            if far && laid.is_none() {
                vector_outermost(self.group, choice.axis, self.made, ranks);
            }
        }
    }

    fn kinds(&self, ranks: &mut [u32], choice: Choice) {
        let slots = &self.group.slots;
        if let Some(slot) = slots.unroll
            && let Domain::Discrete(unroll) = self.made.parameters[slot].domain()
        {
            let last = self.group.reduce.last().map_or(1, |split| split.axis.extent);
            let wanted = if last >= 16 { 2 } else { 1 };
            let values = 0..self.made.parameters[slot].count();
            ranks[slot] = values.into_iter().find(|r| unroll.value(*r) == wanted).unwrap_or(0);
        }
        if let Some(slot) = slots.store {
            let turned = self.group.contiguous.is_some_and(|along| {
                along != choice.axis && Some(along) == choice.row && (2..=16).contains(&choice.rows)
            });
            ranks[slot] = u32::from(turned);
        }
    }
}
