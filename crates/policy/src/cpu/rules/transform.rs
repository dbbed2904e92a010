//! Scheduling of data movement: copies, transpositions, small unrolled matrices.
//!
//! A stage is *unrolled* along a loop if its value is selected by that loop's variable, so that
//! every statement is one of the selected values. If it is the only reader of another unrolled
//! stage, that one is computed at the same loop, one vector at a time, and stays in the L1 cache:
//!
//! ```text
//! for tile { for c.0 {                     // V and, inside, B
//!   for e { B(e, 0) = ..; B(e, 1) = ..; }     // lanes: c.1
//!   for i { V(i, 0) = ..; V(i, 1) = ..; }
//! ```

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::{BufferId, Role};
use tensorwright_schedule::placement::{only_reader, store_of};
use tensorwright_schedule::primitives::{
    CacheWrite, ComputeAt, Fuse, Reorder, Split, Tail, Unroll, Vectorize, stages,
};

use crate::stages::kinds::written_loops;

/// The unrolled stage that only this unrolled stage reads.
fn producer_of(draft: &ScheduleState, root: &str) -> Option<(String, BufferId)> {
    let read: Vec<BufferId> =
        Accesses::of(&draft.nest, root)?.reads.iter().map(|read| read.buffer).collect();
    let is_producer = |stage: &String| {
        let buffer = store_of(&draft.nest, stage).map(|store| store.buffer);
        let buffer = buffer.filter(|buffer| read.contains(buffer))?;
        let alone = only_reader(&draft.nest, buffer).as_deref() == Some(root);
        (alone && !written_loops(draft, stage).is_empty()).then_some((stage.clone(), buffer))
    };
    stages(&draft.nest).iter().find_map(is_producer)
}

/// Whether an unrolled stage is computed inside its reader.
pub(super) fn is_inside(draft: &ScheduleState, stage: &str) -> bool {
    let Some(store) = store_of(&draft.nest, stage) else { return false };
    let reader = only_reader(&draft.nest, store.buffer);
    let written = |stage: &str| !written_loops(draft, stage).is_empty();
    written(stage) && reader.is_some_and(|reader| written(&reader))
}

/// Schedules an unrolled stage and its producer; returns whether it succeeded.
pub(super) fn schedule(draft: &mut ScheduleState, root: &str, goal: &Goal<Cpu>) -> bool {
    let written = written_loops(draft, root);
    let Some(accesses) = Accesses::of(&draft.nest, root) else { return false };
    let bytes = draft.nest.dtype(accesses.write.buffer).bytes() as i64;
    let lanes = goal.target.lanes(bytes);
    let is_lane = |axis: &&Axis| {
        axis.extent > 1
            && accesses.strided(axis).is_empty()
            && written.iter().all(|other| other.var != axis.var)
            && accesses.reads.iter().any(|read| read.stride(axis) == Some(1))
    };
    let Some(lane) = accesses.of_role(Role::Spatial).filter(is_lane).max_by_key(|a| a.extent)
    else {
        return false;
    };
    if written.is_empty() {
        return false;
    }
    let producer = producer_of(draft, root);
    let inner = inner_loops(draft, &accesses, &written, producer.as_ref());
    let plan =
        Plan { root, lane, lanes: lanes.min(lane.extent), accesses: &accesses, written, inner };
    draft.steps(|draft| plan.apply(draft, producer.as_ref().map(|(stage, _)| stage.as_str())))
}

/// The loops inside a vector: the unrolled ones, and those that index the producer's unrolled
/// results.
fn inner_loops(
    draft: &ScheduleState,
    accesses: &Accesses,
    written: &[Axis],
    producer: Option<&(String, BufferId)>,
) -> Vec<Axis> {
    let mut dims: Vec<usize> = Vec::new();
    let mut buffer = None;
    if let Some((stage, id)) = producer
        && let Some(made) = Accesses::of(&draft.nest, stage)
    {
        let loops = written_loops(draft, stage);
        dims = loops.iter().filter_map(|axis| made.write.dimension_of(axis)).collect();
        buffer = Some(*id);
    }
    let numbers = |axis: &Axis| {
        let mut reads = accesses.reads.iter().filter(|read| Some(read.buffer) == buffer);
        reads.any(|read| dims.iter().any(|dim| read.subscripts[*dim].as_axis() == Some(axis.var)))
    };
    let is_written = |axis: &Axis| written.iter().any(|other| other.var == axis.var);
    let inner = accesses.axes.iter().filter(|axis| numbers(axis) || is_written(axis));
    inner.cloned().collect()
}

struct Plan<'a> {
    root: &'a str,
    lane: &'a Axis,
    lanes: i64,
    accesses: &'a Accesses,
    written: Vec<Axis>,
    inner: Vec<Axis>,
}

impl Plan<'_> {
    fn apply(&self, draft: &mut ScheduleState, producer: Option<&str>) -> bool {
        let (root, lane) = (self.root, &self.lane.name);
        let (outer, lanes) = (format!("{lane}.0"), format!("{lane}.1"));
        if !draft.step(root, Split::new(lane, &[self.lanes]).tail(Tail::Peel)) {
            return false;
        }
        let row = self.row();
        let is_inner = |axis: &Axis| self.inner.iter().any(|other| other.var == axis.var);
        let is_row = |axis: &Axis| row.as_ref().is_some_and(|row| row.var == axis.var);
        let others = self
            .accesses
            .axes
            .iter()
            .filter(|axis| axis.var != self.lane.var && !is_inner(axis) && !is_row(axis));
        let mut order: Vec<String> = others.map(|axis| axis.name.clone()).collect();
        order.push(outer.clone());
        order.extend(row.iter().map(|row| row.name.clone()));
        order.extend(self.inner.iter().map(|axis| axis.name.clone()));
        order.push(lanes.clone());
        if !draft.step(root, Reorder { order }) {
            return false;
        }
        let host = row.as_ref().map_or(&outer, |row| &row.name);
        let tile = match &row {
            Some(row) if self.turn(draft, &outer, row, &lanes) => format!("{root}.tile"),
            _ => root.to_owned(),
        };
        if let Some(producer) = producer
            && draft.step(producer, ComputeAt { consumer: tile.clone(), at: host.clone() })
        {
            self.vectors(draft, producer);
        }
        for axis in &self.written {
            draft.step(&tile, Unroll { target: axis.name.clone() });
        }
        draft.step(&tile, Vectorize { target: lanes })
    }

    /// The loop that moves the innermost dimension of the result together with an unrolled loop: if
    /// lanes are not contiguous in memory, its iterations are collected into rows.
    fn row(&self) -> Option<Axis> {
        let write = &self.accesses.write;
        if write.stride(self.lane) == Some(1) {
            return None;
        }
        let within = self.written.iter().find(|axis| write.stride(axis) == Some(1))?;
        let moves = |axis: &&Axis| {
            axis.extent > 1 && write.stride(axis) == Some(within.extent) && axis.var != within.var
        };
        self.accesses.axes.iter().find(moves).cloned()
    }

    /// Collects the results of a row in a tile and stores it in vectors along the row.
    fn turn(&self, draft: &mut ScheduleState, at: &str, row: &Axis, lanes: &str) -> bool {
        let root = self.root;
        draft.steps(|draft| {
            if !draft.step(root, CacheWrite { at: at.to_owned() }) {
                return false;
            }
            let write = &self.accesses.write;
            let within = self.written.iter().find(|axis| write.stride(axis) == Some(1));
            let Some(within) = within.map(|axis| axis.name.clone()) else { return false };
            let rest = self.inner.iter().map(|axis| axis.name.clone());
            let mut order = vec![lanes.to_owned()];
            order.extend(rest.filter(|name| *name != within));
            order.extend([row.name.clone(), within.clone()]);
            let fused = format!("{}_{within}", row.name);
            draft.step(root, Reorder { order })
                && draft.step(
                    root,
                    Fuse { outer: row.name.clone(), inner: within, name: Some(fused.clone()) },
                )
                && draft.step(root, Split::new(&fused, &[self.lanes]).tail(Tail::Peel))
                && draft.step(root, Vectorize { target: format!("{fused}.1") })
        })
    }

    /// Vectorizes a producer inside the root: the same lanes, its own loops unrolled.
    fn vectors(&self, draft: &mut ScheduleState, stage: &str) {
        let written = written_loops(draft, stage);
        let Some(accesses) = Accesses::of(&draft.nest, stage) else { return };
        let is_lane = |axis: &&Axis| axis.extent > 1 && accesses.write.stride(axis) == Some(1);
        let Some(lane) = accesses.axes.iter().find(is_lane).map(|axis| axis.name.clone()) else {
            return;
        };
        let rest = accesses.axes.iter().map(|axis| axis.name.clone()).filter(|name| *name != lane);
        let mut order: Vec<String> = rest.collect();
        order.push(lane.clone());
        draft.step(stage, Reorder { order });
        for axis in written {
            draft.step(stage, Unroll { target: axis.name });
        }
        draft.step(stage, Vectorize { target: lane });
    }
}
