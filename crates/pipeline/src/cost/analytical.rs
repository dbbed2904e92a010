//! [`Analytical`]: a model that is computed, the baseline for those that are learned.
//!
//! The parts are those of section 5.2: compute, load, store, parallelism and working set. A stage takes as long as its
//! instructions or its loads, whichever take longer, and what it moves between the levels of memory on top of that. What
//! is computed twice counts twice.

use crate::dag::{Dag, Source};
use crate::levels::{LevelKind, Levels};
use crate::state::{Layout, Load, Member};

use super::{CostModel, Machine};

/// The bytes of a line of a cache.
const LINE: f64 = 64.0;

/// Costs in cycles, computed from tiles and footprints.
#[derive(Debug, Clone)]
pub struct Analytical<'a> {
    dag: &'a Dag,
    levels: &'a Levels,
    machine: Machine,
}

impl<'a> Analytical<'a> {
    /// The model of a machine.
    #[must_use]
    pub fn new(dag: &'a Dag, levels: &'a Levels, machine: Machine) -> Self {
        Self { dag, levels, machine }
    }

    /// The bytes of a region of a tensor; rows of it begin and end in the middle of lines.
    fn bytes(region: &[i64], element: f64) -> f64 {
        let Some((row, others)) = region.split_last() else { return element };
        let rows: f64 = others.iter().map(|extent| *extent as f64).product();
        rows * (*row as f64 * element + LINE / 2.0)
    }

    /// The bytes that all stages of a loop hold at a time.
    fn held(&self, members: &[Member], host: Option<(usize, usize)>) -> f64 {
        let bytes = |member: &Member| {
            Self::bytes(&member.region, self.dag.stages[member.stage].element_bytes as f64)
        };
        members.iter().filter(|member| member.host == host).map(bytes).sum()
    }

    /// Cycles to compute all elements of a stage: one execution.
    fn compute(&self, member: &Member, operations: f64, loads: f64) -> f64 {
        let Machine { arithmetic, loads: ports, row, start, .. } = self.machine;
        let stage = &self.dag.stages[member.stage];
        let (last, others) = match member.region.split_last() {
            Some((last, others)) => (*last as f64, others),
            None => (1.0, &[][..]),
        };
        let rows: f64 = others.iter().map(|extent| *extent as f64).product();
        let lanes = (self.machine.vector_bytes / stage.element_bytes as f64).max(1.0);
        let body = member.tiling.as_ref().and_then(|tiling| tiling.tiles.last());
        let body = body.and_then(|tile| tile.last()).map_or(lanes, |extent| *extent as f64);
        let is_vector = last * 2.0 >= lanes;
        // A body that is not filled takes as long as one that is.
        let blocks = (last / body).ceil();
        let vectors = if is_vector { blocks * (body / lanes).ceil() } else { last };
        let one = (operations / arithmetic).max(loads / ports).max(1.0);
        let per_row = vectors * one * stage.terms() + blocks * (2.0 + stage.terms() * 0.5);
        start + rows * (row + per_row)
    }

    /// Cycles to move what a stage reads, in one execution.
    fn load(&self, member: &Member, load: &Load, members: &[Member]) -> f64 {
        let (element, whole) = match load.source {
            Source::Stage(of) => {
                let stage = &self.dag.stages[of];
                (stage.element_bytes as f64, stage.bytes())
            }
            Source::Input(of) => {
                let input = &self.dag.inputs[of];
                (input.element_bytes as f64, input.bytes as f64)
            }
        };
        let bytes = Self::bytes(&load.region, element);
        let inside = match load.source {
            Source::Stage(of) => {
                members.iter().find(|member| member.stage == of && member.host.is_some())
            }
            Source::Input(_) => None,
        };
        // Rows that a window reads again are still in the first level, or come again from the second.
        let window = self.again(member, load, element);
        match inside {
            Some(made) => {
                let held = self.held(members, made.host);
                window + bytes * self.per_byte(held)
            }
            None => window + bytes * self.per_byte(whole),
        }
    }

    /// Cycles per byte of what is touched again after so many bytes.
    fn per_byte(&self, between: f64) -> f64 {
        let Machine { l1, l2, l2_bytes, memory_bytes, .. } = self.machine;
        match between {
            held if held <= l1 * 0.75 => 0.0,
            held if held <= l2 * 0.75 => 1.0 / l2_bytes,
            held if held <= l2 * 1.5 => 2.0 / l2_bytes,
            _ => 1.0 / memory_bytes,
        }
    }

    /// Cycles for rows of a window that the first level does not hold from one row of the stage to the next.
    fn again(&self, member: &Member, load: &Load, element: f64) -> f64 {
        let ([.., rows, row], [.., own, _]) = (load.region.as_slice(), member.region.as_slice())
        else {
            return 0.0;
        };
        let window = (rows - own + 1).max(1) as f64;
        let bytes = *row as f64 * element;
        if window <= 1.0 || window * bytes <= self.machine.l1 * 0.75 {
            return 0.0;
        }
        let others: f64 = load.region.iter().rev().skip(2).map(|extent| *extent as f64).product();
        (window - 1.0) * bytes * *own as f64 * others / self.machine.l2_bytes
    }

    /// Cycles to move what a stage makes, in one execution. What goes to memory is read from there first.
    fn store(&self, member: &Member, members: &[Member]) -> f64 {
        let stage = &self.dag.stages[member.stage];
        let bytes = Self::bytes(&member.region, stage.element_bytes as f64);
        match member.host {
            Some(_) => bytes * self.per_byte(self.held(members, member.host)),
            None => 2.0 * bytes * self.per_byte(stage.bytes()),
        }
    }

    /// How many iterations workers share, and the part of the time in which all of them work.
    fn parallel(&self, root: &Member) -> f64 {
        let is_parallel = |level: &usize| {
            self.levels.list.get(*level).is_some_and(|l| l.kind == LevelKind::Parallel)
        };
        let workers = self.machine.workers;
        let Some(tiling) = &root.tiling else { return workers };
        let Some(level) = (0..self.levels.count()).find(is_parallel) else { return 1.0 };
        let trips: f64 =
            tiling.trips(level, &root.region).iter().map(|trips| *trips as f64).product();
        trips / (trips / workers).ceil()
    }
}

impl CostModel for Analytical<'_> {
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)> {
        let members = layout.members(group);
        let Some(root) = members.first() else { return Vec::new() };
        let of_member = |member: &Member| {
            let (loads, operations) = layout.loads(member.stage, &member.region);
            let reads: f64 = loads.iter().map(|load| load.reads).sum();
            let compute = self.compute(member, operations, reads);
            let moved: f64 = loads.iter().map(|load| self.load(member, load, &members)).sum();
            (compute + moved + self.store(member, &members)) * member.executions
        };
        let costs: Vec<(usize, f64)> =
            members.iter().map(|member| (member.stage, of_member(member))).collect();
        let alone: f64 = costs.iter().map(|(_, cost)| cost).sum();
        // Few elements are not shared.
        let shared = alone / self.parallel(root) + self.machine.launch;
        let is_shared = self.machine.workers > 1.0
            && self.dag.stages[group].points() >= self.levels.worth_sharing as f64;
        let share = if is_shared { shared / alone.max(1.0) } else { 1.0 };
        costs.into_iter().map(|(stage, cost)| (stage, cost * share)).collect()
    }
}
