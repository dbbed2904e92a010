//! Schedule steps of a chain.

use tensorwright_machine::{Cpu, Goal};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::{Accesses, Axis};
use tensorwright_schedule::nest::Role;
use tensorwright_schedule::placement::store_of;
use tensorwright_schedule::primitives::{
    ComputeAt, MAX_LANES, Parallel, Reorder, Rfactor, Split, Tail, Unroll, Vectorize,
};
use tensorwright_schedule::{ScheduleError, primitives::Primitive};

use super::phases::phases;
use super::{Chain, RowStage, RowTiling};
use crate::stages::sibling_fusion::RowShares;

/// Fuses the stages of a chain row by row.
///
/// # Errors
/// If a required step is refused.
pub(crate) fn compute(
    draft: &mut ScheduleState,
    chain: &Chain,
    tiling: &RowTiling,
    goal: &Goal<Cpu>,
) -> Result<(), ScheduleError> {
    // An inlined stage is part of its readers.
    let all = chain.stages.iter().zip(tiling.vectors.iter().copied());
    let (tiled, by_rows): (Vec<_>, Vec<_>) = all
        .filter(|(stage, _)| store_of(&draft.nest, &stage.name).is_some())
        .partition(|(stage, _)| stage.in_tile);
    let SharedRowLoop { row, copied } = join(draft, chain, tiling, goal)?;
    place_some(draft, chain, &row, |stage| !stage.in_tile)?;
    let tile = tile_of(draft, &chain.root, &row);
    for (stage, vectors) in by_rows {
        let name = stage.name.as_str();
        let copies = copied.iter().find(|(stage, _)| stage == name).map(|(_, copies)| copies);
        for stage in copies.map(String::as_str).into_iter().chain([name]) {
            let depth = if stage == chain.root { depth(draft, stage, &row) } else { 0 };
            Row { draft, stage, at: &row, depth, vectors, is_short: false, goal }.schedule()?;
        }
    }
    for (stage, _) in tiled.into_iter().rev() {
        let at = ComputeAt { consumer: chain.root.clone(), at: tile.clone() };
        draft.apply(&stage.name, at)?;
        in_registers(draft, &stage.name, goal)?;
    }
    if tiling.is_parallel && copied.len() == chain.adding_up().count() {
        let names = draft.loop_names(&chain.root);
        if let Some(outermost) = names.first() {
            draft.apply(&chain.root, Parallel { target: outermost.clone() })?;
        }
    }
    Ok(())
}

/// The row loop of a chain with its siblings.
struct SharedRowLoop {
    /// The loop that all stages are computed in.
    row: String,
    /// The privatized sums over rows, each with the stage of its private copies.
    copied: Vec<(String, String)>,
}

/// Fuses the siblings into the row loops of the root. If these are parallel, sums over rows are
/// privatized.
///
/// # Errors
/// If a step is refused.
fn join(
    draft: &mut ScheduleState,
    chain: &Chain,
    tiling: &RowTiling,
    goal: &Goal<Cpu>,
) -> Result<SharedRowLoop, ScheduleError> {
    let mut joined = SharedRowLoop { row: chain.row.clone(), copied: Vec::new() };
    if chain.siblings.is_empty() {
        return Ok(joined);
    }
    let rows = Accesses::of(&draft.nest, &chain.root).map_or_else(Vec::new, |own| own.axes);
    let first = rows.first().filter(|_| tiling.is_parallel && chain.adding_up().next().is_some());
    let shares = first.and_then(|first| RowShares::of(first.extent, goal.workers));
    if let (Some(shares), Some(first)) = (shares, first) {
        let [_, inner] = shares.cut(draft, &chain.root, &first.name)?;
        if first.name == joined.row {
            joined.row = inner;
        }
    }
    for sibling in &chain.siblings {
        let stage = sibling.join(draft, (&chain.root, &joined.row), shares)?;
        if stage != sibling.stage {
            joined.copied.push((sibling.stage.clone(), stage));
        }
    }
    Ok(joined)
}

/// The loop of a root over vectors per step, as [`Row`] names it.
fn tile_of(draft: &ScheduleState, root: &str, row: &str) -> String {
    let depth = depth(draft, root, row);
    let accesses = Accesses::of(&draft.nest, root);
    let axis = accesses.as_ref().and_then(|accesses| lane_axis(accesses, depth));
    axis.map_or_else(|| row.to_owned(), |axis| format!("{}.0", axis.name))
}

/// Unrolls all loops of a small stage and vectorizes its rows, so that it stays in registers.
///
/// # Errors
/// If a step is refused.
pub(crate) fn in_registers(
    draft: &mut ScheduleState,
    stage: &str,
    goal: &Goal<Cpu>,
) -> Result<(), ScheduleError> {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return Ok(()) };
    let terms: Vec<String> = accesses.of_role(Role::Reduce).map(|axis| axis.name.clone()).collect();
    let results = || accesses.of_role(Role::Spatial);
    let Some(axis) = results().find(|axis| accesses.write.stride(axis) == Some(1)) else {
        return Ok(());
    };
    let bytes = draft.nest.dtype(accesses.write.buffer).bytes() as i64;
    let lanes = goal.target.lanes(bytes).min(axis.extent);
    let (vectors, lane) = (format!("{}.vectors", axis.name), format!("{}.lanes", axis.name));
    let mut split = Split::new(&axis.name, &[lanes]).tail(Tail::Peel);
    split.names = vec![vectors.clone(), lane.clone()];
    draft.apply(stage, split)?;
    let others = results().filter(|other| other.var != axis.var && other.extent > 1);
    let others: Vec<String> = others.map(|other| other.name.clone()).collect();
    let single = results().filter(|other| other.var != axis.var && other.extent == 1);
    let single = single.map(|other| other.name.clone());
    let written: Vec<String> = terms.into_iter().chain(others).chain([vectors]).collect();
    let order = single.chain(written.iter().cloned()).chain([lane.clone()]).collect();
    draft.apply(stage, Reorder { order })?;
    for target in written {
        draft.apply(stage, Unroll { target })?;
    }
    draft.apply(stage, Vectorize { target: lane })
}

/// Computes the other stages of a chain at a loop of its root.
///
/// # Errors
/// If that is refused.
pub(crate) fn place(
    draft: &mut ScheduleState,
    chain: &Chain,
    row: &str,
) -> Result<(), ScheduleError> {
    place_some(draft, chain, row, |_| true)
}

/// The same for some of the stages.
fn place_some(
    draft: &mut ScheduleState,
    chain: &Chain,
    row: &str,
    which: impl Fn(&RowStage) -> bool,
) -> Result<(), ScheduleError> {
    let is_placed = |stage: &&RowStage| {
        stage.name != chain.root && !chain.siblings.iter().any(|other| other.stage == stage.name)
    };
    let others = chain.stages.iter().rev().filter(is_placed);
    for stage in others.filter(|stage| which(stage)) {
        if store_of(&draft.nest, &stage.name).is_some() {
            let at = ComputeAt { consumer: chain.root.clone(), at: row.to_owned() };
            draft.apply(&stage.name, at)?;
        }
    }
    Ok(())
}

/// The number of row loops of a stage: those up to a loop.
pub(crate) fn depth(draft: &ScheduleState, stage: &str, row: &str) -> usize {
    let own = Accesses::of(&draft.nest, stage).map_or_else(Vec::new, |found| found.axes);
    own.iter().position(|axis| axis.name == row).map_or(0, |place| place + 1)
}

/// The maximum vectors of a row per step of a stage.
pub(super) fn most_vectors(
    draft: &ScheduleState,
    stage: &str,
    depth: usize,
    goal: &Goal<Cpu>,
) -> i64 {
    let Some(accesses) = Accesses::of(&draft.nest, stage) else { return 1 };
    let lanes = goal.target.lanes(draft.nest.dtype(accesses.write.buffer).bytes() as i64).max(1);
    match lane_axis(&accesses, depth) {
        Some(axis) if axis.role == Role::Reduce => (axis.extent.min(MAX_LANES) / lanes).max(1),
        Some(axis) => (axis.extent / lanes).max(1),
        None => 1,
    }
}

/// The loop of a row to vectorize: a contiguous spatial loop, otherwise a contiguous reduction
/// loop. The first `depth` loops are row loops.
pub(crate) fn lane_axis(accesses: &Accesses, depth: usize) -> Option<&Axis> {
    let inner = || accesses.axes.iter().skip(depth).filter(|axis| axis.extent > 1);
    let contiguous = |axis: &&Axis| accesses.strided(axis).is_empty();
    let written = |axis: &&Axis| accesses.write.stride(axis) == Some(1);
    let results = || inner().filter(|axis| axis.role == Role::Spatial);
    let terms = || inner().filter(|axis| axis.role == Role::Reduce);
    let both = results().filter(written).find(contiguous);
    let in_phases = || results().filter(written).find(|axis| phases(accesses, axis).is_some());
    both.or_else(in_phases)
        .or_else(|| terms().filter(contiguous).max_by_key(|axis| axis.extent))
        .or_else(|| results().find(written))
}

/// A stage inside a row.
pub(crate) struct Row<'a> {
    pub(crate) draft: &'a mut ScheduleState,
    pub(crate) stage: &'a str,
    /// The enclosing row loop.
    pub(crate) at: &'a str,
    /// The number of its row loops.
    pub(crate) depth: usize,
    /// The vectors per step.
    pub(crate) vectors: i64,
    /// Whether rows are short: the rest of a row is then computed in a whole vector that overlaps
    /// the one before.
    pub(crate) is_short: bool,
    pub(crate) goal: &'a Goal<Cpu>,
}

impl Row<'_> {
    /// Vectorizes the row.
    ///
    /// # Errors
    /// If a step is refused.
    pub(crate) fn schedule(&mut self) -> Result<(), ScheduleError> {
        let Some(accesses) = Accesses::of(&self.draft.nest, self.stage) else { return Ok(()) };
        let Some(axis) = lane_axis(&accesses, self.depth).cloned() else { return Ok(()) };
        let bytes = self.draft.nest.dtype(accesses.write.buffer).bytes() as i64;
        let lanes = self.goal.target.lanes(bytes).min(axis.extent);
        match axis.role {
            Role::Reduce => self.partial(&axis, lanes),
            Role::Spatial => self.results(&accesses, &axis, lanes),
            // Recurrences are in no chain.
            Role::Scan => Ok(()),
        }
    }

    pub(super) fn apply(
        &mut self,
        stage: &str,
        primitive: impl Into<Primitive>,
    ) -> Result<(), ScheduleError> {
        self.draft.apply(stage, primitive)
    }

    /// Vectorizes a reduction along the row: partial results in the lanes of several vectors,
    /// combined at the end.
    fn partial(&mut self, axis: &Axis, lanes: i64) -> Result<(), ScheduleError> {
        let (stage, name) = (self.stage, &axis.name);
        let vectors = self.vectors.min(axis.extent / lanes).min(MAX_LANES / lanes).max(1);
        let (blocks, block) = (format!("{name}.0"), format!("{name}.1"));
        let mut split = Split::new(name, &[vectors * lanes]).tail(Tail::Peel);
        split.names = vec![blocks.clone(), block.clone()];
        self.apply(stage, split)?;
        let accesses = Accesses::of(&self.draft.nest, stage);
        let terms = accesses.iter().flat_map(|accesses| accesses.of_role(Role::Reduce));
        let mut order: Vec<String> = terms.map(|axis| axis.name.clone()).collect();
        order.retain(|other| *other != blocks && *other != block);
        order.extend([blocks, block.clone()]);
        self.apply(stage, Reorder { order })?;
        self.apply(stage, Rfactor { target: block.clone(), at: self.at.to_owned() })?;
        let partial = format!("{stage}.rf");
        let mut target = block.clone();
        if vectors > 1 {
            let (unrolled, lane) = (format!("{name}.vectors"), format!("{name}.lanes"));
            let mut split = Split::new(&block, &[lanes]);
            split.names = vec![unrolled.clone(), lane.clone()];
            self.apply(&partial, split)?;
            self.apply(&partial, Unroll { target: unrolled })?;
            target = lane;
        }
        self.apply(&partial, Vectorize { target })?;
        self.apply(stage, Vectorize { target: block })
    }
}
