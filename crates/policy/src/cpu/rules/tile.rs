//! Register tiling by rules: unrolling, vectorization and packing.

use super::groups::Group;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Access, Accesses, Axis};
use tensorwright_schedule::nest::{Owner, Role};
use tensorwright_schedule::primitives::{
    CacheRead, CacheWrite, ComputeAt, LayoutText, Part, Reorder, Rfactor, SetLayout, Split, Tail,
    Unroll, Vectorize,
};

use crate::cpu::loops::row::{Row, lane_axis, phases};
use crate::cpu::loops::tile_alone;
use crate::cpu::register_tile::{Along, register_tile};

/// Rows longer than this, in bytes, are packed into panels: beyond it a column of a tile touches a
/// page per row.
pub const PACK_ROW_BYTES: i64 = 1536;

/// The minimum number of iterations that reuse a packed panel.
const PACK_REUSE: i64 = 32;

/// Schedules the loops of a group.
pub(super) fn schedule(draft: &mut ScheduleState, group: &Group, goal: &Goal<Cpu>) {
    let stage = group.reduction.as_ref().unwrap_or(&group.root);
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return };
    let plan = Plan::new(draft, goal, &accesses);
    let is_reduction = accesses.of_role(Role::Reduce).next().is_some();
    let vector = plan.vector_axis().filter(|_| is_reduction);
    let tiled = vector.is_some_and(|vector| {
        let tile = plan.tile(&vector);
        draft.steps(|draft| plan.tiled(draft, group, &tile))
    });
    if tiled {
        return;
    }
    let partial = plan.reduction_axis().filter(|_| is_reduction && plan.vector_axis().is_none());
    let phased = is_reduction && draft.steps(|draft| in_phases(draft, stage, &accesses, goal));
    let partial = !phased
        && partial
            .is_some_and(|reduction| draft.steps(|draft| plan.partial(draft, stage, &reduction)));
    // Stages that are not tiled together are scheduled separately.
    if !partial && !phased {
        rows(draft, stage, goal);
    }
    if group.reduction.is_some() {
        rows(draft, &group.root, goal);
    }
}

/// Schedules a reduction whose reads have a constant stride only for strided results.
fn in_phases(
    draft: &mut ScheduleState,
    stage: &str,
    accesses: &Accesses,
    goal: &Goal<Cpu>,
) -> bool {
    let is_phased = lane_axis(accesses, 0).is_some_and(|axis| phases(accesses, axis).is_some());
    is_phased
        && tile_alone(draft, stage, |nest, open, at| {
            Row { vectors: 1, is_short: false, at }.tiling(nest, open, goal)
        })
}

/// Vectorizes the rows of a stage.
pub(super) fn rows(draft: &mut ScheduleState, stage: &str, goal: &Goal<Cpu>) {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return };
    let plan = Plan::new(draft, goal, &accesses);
    let vector = plan.row_vector();
    if let Some(vector) = vector {
        draft.steps(|draft| plan.rows(draft, stage, &vector));
    }
}

struct Plan<'a> {
    goal: &'a Goal<Cpu>,
    lanes: i64,
    accesses: &'a Accesses,
}

/// A register tile: `rows` iterations of one loop by `vectors` vectors along another.
struct Tile {
    vector: Axis,
    vectors: i64,
    rows: Option<(Axis, i64)>,
}

impl<'a> Plan<'a> {
    fn new(draft: &ScheduleState, goal: &'a Goal<Cpu>, accesses: &'a Accesses) -> Self {
        let bytes = draft.nest.dtype(accesses.write.buffer).bytes() as i64;
        let lanes = goal.target.lanes(bytes);
        Self { goal, lanes, accesses }
    }

    /// The spatial loop along which every read is contiguous or constant, vectors are full, and
    /// preferably the write is contiguous.
    fn vector_axis(&self) -> Option<Axis> {
        let score = |axis: &&Axis| {
            let full = axis.extent * 2 >= self.lanes;
            let contiguous = self.accesses.write.stride(axis) == Some(1);
            let reads = self.accesses.reads.iter().any(|read| read.stride(axis) == Some(1));
            (full, contiguous, reads, axis.extent)
        };
        self.accesses
            .of_role(Role::Spatial)
            .filter(|axis| axis.extent > 1 && self.accesses.strided(axis).is_empty())
            .max_by_key(score)
            .filter(|axis| axis.extent * 2 >= self.lanes)
            .cloned()
    }

    /// The vectorized loop of a stage without reuse. If no loop moves everything by one element,
    /// writes are contiguous and reads gathered, which is a few times faster than the reverse.
    fn row_vector(&self) -> Option<Axis> {
        let spatial = || self.accesses.of_role(Role::Spatial);
        let is_reduction = self.accesses.of_role(Role::Reduce).next().is_some();
        let written = |axis: &&Axis| {
            axis.extent * 2 >= self.lanes && self.accesses.write.stride(axis) == Some(1)
        };
        let both = self.vector_axis();
        if both.as_ref().is_some_and(|axis| is_reduction || written(&axis)) {
            return both;
        }
        spatial().find(written).cloned().or(both).or_else(|| spatial().last().cloned())
    }

    /// The loop along which gathered reads are contiguous: directly around the lanes, so that each
    /// cache line is fetched once.
    fn gathered_along(&self, vector: &Axis) -> Option<Axis> {
        let strided = self.accesses.strided(vector);
        let along = |axis: &&Axis| {
            axis.var != vector.var && strided.iter().any(|read| read.stride(axis) == Some(1))
        };
        self.accesses.of_role(Role::Spatial).find(along).cloned()
    }

    /// The reduction loop along which every read is contiguous or constant.
    fn reduction_axis(&self) -> Option<Axis> {
        self.accesses
            .of_role(Role::Reduce)
            .filter(|axis| axis.extent >= self.lanes && self.accesses.strided(axis).is_empty())
            .max_by_key(|axis| axis.extent)
            .cloned()
    }

    /// The loop whose iterations share the vectors of a tile.
    fn row_axis(&self, vector: &Axis) -> Option<Axis> {
        let shares = |axis: &&Axis| {
            axis.var != vector.var && axis.extent > 1 && self.accesses.has_reuse(axis)
        };
        // Rows that share vectors save more loads than rows that share scalars.
        let is_vector = |read: &&Access| read.stride(vector) == Some(1);
        let vectors: Vec<&Access> = self.accesses.reads.iter().filter(is_vector).collect();
        let key =
            |axis: &&Axis| (vectors.iter().all(|read| read.stride(axis) == Some(0)), axis.extent);
        self.accesses.of_role(Role::Spatial).filter(shares).max_by_key(key).cloned()
    }

    /// The tile that keeps the most registers busy and wastes the least on these extents.
    fn tile(&self, vector: &Axis) -> Tile {
        let rows = self.row_axis(vector);
        let row_extent = rows.as_ref().map_or(1, |axis| axis.extent);
        let along = Along { vector: vector.extent, rows: row_extent, lanes: self.lanes };
        let best = register_tile(&self.goal.target, along);
        let rows = rows.map(|axis| (axis, best.rows));
        Tile { vector: vector.clone(), vectors: best.vectors, rows }
    }

    /// Register-tiles a reduction, inside the tiles of its epilogue if it has one.
    fn tiled(&self, draft: &mut ScheduleState, group: &Group, tile: &Tile) -> bool {
        let root = &group.root;
        let position = |axis: &Axis| {
            self.accesses.of_role(Role::Spatial).position(|other| other.var == axis.var)
        };
        // The loops of an epilogue correspond to those of the reduction, with names of their own.
        let spatial: Vec<String> = draft.loop_names(root);
        let name = |axis: &Axis| position(axis).and_then(|place| spatial.get(place).cloned());
        let Some(vector) = name(&tile.vector) else { return false };
        let block = [tile.vectors, self.lanes];
        if !draft.step(root, Split::new(&vector, &block).tail(Tail::Peel)) {
            return false;
        }
        let mut inner = vec![format!("{vector}.1"), format!("{vector}.2")];
        let mut last = format!("{vector}.0");
        let mut order: Vec<String> = Vec::new();
        if let Some((axis, count)) = &tile.rows
            && let Some(row) = name(axis)
            && *count > 1
        {
            if !draft.step(root, Split::new(&row, &[*count]).tail(Tail::Peel)) {
                return false;
            }
            inner.insert(0, format!("{row}.1"));
            order.push(last);
            last = format!("{row}.0");
        }
        order.push(last.clone());
        self.order(draft, group, order, &inner);
        let stage = match &group.reduction {
            Some(reduction) => {
                let at = ComputeAt { consumer: root.clone(), at: last.clone() };
                if !draft.step(reduction, at) {
                    return false;
                }
                self.tile_inside(draft, reduction, tile);
                reduction
            }
            None => root,
        };
        for (place, name) in inner.iter().enumerate() {
            if place + 1 == inner.len() {
                draft.step(root, Vectorize { target: name.clone() });
            } else {
                draft.step(root, Unroll { target: name.clone() });
            }
        }
        if group.reduction.is_none() && !draft.step(root, CacheWrite { at: last.clone() }) {
            return false;
        }
        self.pack(draft, stage, tile, &format!("{vector}.0"));
        true
    }

    /// Orders the loops of the root: outer loops, tiles, its own reduction, the inside of the tile.
    fn order(
        &self,
        draft: &mut ScheduleState,
        group: &Group,
        tiles: Vec<String>,
        inner: &[String],
    ) {
        let all = draft.loop_names(&group.root);
        let reduce: Vec<String> = if group.reduction.is_none() {
            self.accesses.of_role(Role::Reduce).map(|axis| axis.name.clone()).collect()
        } else {
            Vec::new()
        };
        let known =
            |name: &String| tiles.contains(name) || inner.contains(name) || reduce.contains(name);
        let mut order: Vec<String> = all.iter().filter(|name| !known(name)).cloned().collect();
        order.extend(tiles.iter().cloned());
        order.extend(reduce.iter().cloned());
        order.extend(inner.iter().cloned());
        draft.step(&group.root, Reorder { order });
    }

    /// Schedules the loops of a reduction over a tile of its epilogue.
    fn tile_inside(&self, draft: &mut ScheduleState, stage: &str, tile: &Tile) {
        let vector = &tile.vector.name;
        let reduce = self.accesses.of_role(Role::Reduce).map(|axis| axis.name.clone());
        let mut order: Vec<String> = reduce.collect();
        draft.step(stage, Split::new(vector, &[self.lanes]));
        let row = tile.rows.as_ref().filter(|(_, count)| *count > 1).map(|(axis, _)| &axis.name);
        order.extend(row.cloned());
        order.push(format!("{vector}.0"));
        order.push(format!("{vector}.1"));
        draft.step(stage, Reorder { order });
        for name in row.into_iter().cloned().chain([format!("{vector}.0")]) {
            draft.step(stage, Unroll { target: name });
        }
        draft.step(stage, Vectorize { target: format!("{vector}.1") });
    }

    /// Packs a read that is widely strided along the vectors, if the panel is reused often.
    fn pack(&self, draft: &mut ScheduleState, stage: &str, tile: &Tile, at: &str) {
        let Some((row, count)) = &tile.rows else { return };
        if row.extent < PACK_REUSE || row.extent / count < 4 {
            return;
        }
        let far = |access: &&Access| {
            let bytes = draft.nest.dtype(access.buffer).bytes() as i64;
            let step = self.accesses.of_role(Role::Reduce).filter_map(|axis| access.stride(axis));
            let step = step.filter(|stride| *stride > 1).min();
            access.stride(&tile.vector) == Some(1)
                && access.stride(row) == Some(0)
                && step.is_some_and(|stride| stride * bytes >= PACK_ROW_BYTES)
        };
        let reads: Vec<Access> = self.accesses.reads.iter().filter(far).cloned().collect();
        for read in reads {
            let buffer = draft.nest.buffer(read.buffer);
            let (tensor, rank) = (buffer.name.clone(), buffer.shape.len());
            let constant =
                buffer.owner == Owner::Prepared || draft.nest.constants.contains(&read.buffer);
            if constant && self.lay(draft, &tensor, &read, tile) {
                continue;
            }
            let step = CacheRead::new(&tensor, at);
            if rank < 1 || !draft.step(stage, step) {
                continue;
            }
            let copy = format!("{tensor}.pack");
            let row = format!("d{}", rank - 1);
            draft.steps(|draft| {
                draft.step(&copy, Split::new(&row, &[self.lanes]))
                    && draft.step(&copy, Vectorize { target: format!("{row}.1") })
            });
        }
    }

    /// Lays out a constant tensor in panels as wide as the tile, ahead of all calls.
    fn lay(&self, draft: &mut ScheduleState, tensor: &str, read: &Access, tile: &Tile) -> bool {
        let Some(vector) = read.dimension_of(&tile.vector) else { return false };
        let width = tile.vectors * self.lanes;
        let of_terms = |dimension: &usize| {
            let subscript = &read.subscripts[*dimension];
            let mut terms = self.accesses.of_role(Role::Reduce);
            terms.any(|axis| subscript.coefficient_of(axis.var) != Some(0))
        };
        let others = (0..read.subscripts.len()).filter(|dimension| *dimension != vector);
        let (inner, outer): (Vec<usize>, Vec<usize>) = others.partition(of_terms);
        let whole = |dimension: usize| Part::Whole(dimension as u32);
        let mut parts: Vec<Part> = outer.into_iter().map(whole).collect();
        parts.push(Part::Quotient(vector as u32, width));
        parts.extend(inner.into_iter().map(whole));
        parts.push(Part::Remainder(vector as u32, width));
        draft.step(tensor, SetLayout { layout: LayoutText { parts } })
    }

    /// Vectorizes a reduction loop with partial sums.
    fn partial(&self, draft: &mut ScheduleState, stage: &str, reduction: &Axis) -> bool {
        let name = &reduction.name;
        let spatial: Vec<Axis> = self.accesses.of_role(Role::Spatial).cloned().collect();
        let lanes = format!("{name}.lanes");
        // Without an enclosing spatial loop, a loop of one iteration holds the partial sums.
        let host = spatial.is_empty().then(|| format!("{name}.all"));
        let mut split = Split::new(name, &[self.lanes]).tail(Tail::Peel);
        if host.is_some() {
            split.factors.insert(0, (reduction.extent + self.lanes - 1) / self.lanes);
        }
        split.names = host.iter().cloned().collect();
        split.names.extend([format!("{name}.0"), lanes.clone()]);
        if !draft.step(stage, split) {
            return false;
        }
        // Up to two spatial loops share their reads along the reduction.
        let mut rows: Vec<String> = Vec::new();
        for axis in spatial.iter().rev().filter(|axis| axis.extent > 1).take(2) {
            let rest = rows.len() + 1 == spatial.iter().filter(|axis| axis.extent > 1).count();
            let count = if rest && rows.is_empty() { 8 } else { 4 };
            let count = count.min(axis.extent);
            if draft.step(stage, Split::new(&axis.name, &[count]).tail(Tail::Peel)) {
                rows.insert(0, format!("{}.1", axis.name));
            }
        }
        let all = draft.loop_names(stage);
        let outer = format!("{name}.0");
        let others = self.accesses.of_role(Role::Reduce).filter(|axis| axis.var != reduction.var);
        let mut inner: Vec<String> = others.map(|axis| axis.name.clone()).collect();
        inner.push(outer);
        inner.extend(rows.iter().cloned());
        inner.push(lanes.clone());
        let mut order: Vec<String> = all.into_iter().filter(|name| !inner.contains(name)).collect();
        let Some(host) = order.last().cloned() else { return false };
        order.extend(inner);
        if !draft.step(stage, Reorder { order })
            || !draft.step(stage, Rfactor { target: lanes.clone(), at: host })
        {
            return false;
        }
        let factored = format!("{stage}.rf");
        for row in rows {
            draft.step(&factored, Unroll { target: row.clone() });
            draft.step(stage, Unroll { target: row });
        }
        draft.step(stage, Vectorize { target: lanes.clone() });
        draft.step(&factored, Vectorize { target: lanes })
    }

    /// Vectorizes the rows of stages without reuse.
    fn rows(&self, draft: &mut ScheduleState, stage: &str, vector: &Axis) -> bool {
        let name = &vector.name;
        let lanes = self.lanes.min(vector.extent);
        if !draft.step(stage, Split::new(name, &[lanes]).tail(Tail::Peel)) {
            return false;
        }
        let all = draft.loop_names(stage);
        let (outer, inner) = (format!("{name}.0"), format!("{name}.1"));
        let own: Vec<String> = self.accesses.axes.iter().map(|axis| axis.name.clone()).collect();
        let mut order: Vec<String> =
            all.into_iter().filter(|found| own.contains(found) && found != name).collect();
        let reduce: Vec<String> =
            self.accesses.of_role(Role::Reduce).map(|axis| axis.name.clone()).collect();
        let close = self.gathered_along(vector).map(|axis| axis.name);
        order.retain(|found| !reduce.contains(found) && Some(found) != close.as_ref());
        order.push(outer.clone());
        order.extend(close);
        order.extend(reduce.clone());
        order.push(inner.clone());
        draft.step(stage, Reorder { order });
        if !draft.step(stage, Vectorize { target: inner }) {
            return false;
        }
        if !reduce.is_empty() {
            draft.step(stage, CacheWrite { at: outer });
        }
        true
    }
}
