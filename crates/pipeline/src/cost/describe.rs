//! Inputs of cost models: the amounts and features of a stage.

use crate::dag::{Dag, Source};
use crate::levels::{LevelKind, Levels};
use crate::state::{Layout, Load, Member};

use super::features::{Features, StageContext};
use super::{Amounts, Kind, Machine};

/// The bytes of a cache line.
const LINE: f64 = 64.0;

/// The inputs of a cost model for a stage of a state.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// The stage.
    pub stage: usize,
    /// Its amounts, divided among all workers.
    pub amounts: Amounts,
    /// The features that prices may depend on.
    pub features: Features,
}

/// Computes the descriptions of stages in states of one program.
#[derive(Debug, Clone)]
pub struct Describer<'a> {
    dag: &'a Dag,
    levels: &'a Levels,
    machine: Machine,
    /// The prices of the analytical model, per kind.
    pub(super) prices: Vec<f64>,
}

impl<'a> Describer<'a> {
    /// For a machine.
    #[must_use]
    pub fn new(dag: &'a Dag, levels: &'a Levels, machine: Machine) -> Self {
        let prices = Kind::prices(&machine);
        Self { dag, levels, machine, prices }
    }

    /// The stages of a group.
    #[must_use]
    pub fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<Description> {
        let members = layout.members(group);
        let Some(root) = members.first() else { return Vec::new() };
        let parallel = self.parallel(root);
        // Small stages are sequential.
        let is_shared = self.machine.workers > 1.0
            && self.dag.stages[group].points() >= self.levels.worth_sharing as f64;
        let share = if is_shared { 1.0 / parallel } else { 1.0 };
        let describe = |member: &Member| {
            let (loads, operations) = layout.loads(member.stage, &member.region);
            let mut amounts = self.compute(member, operations, &loads);
            loads.iter().for_each(|load| self.load(member, load, &members, &mut amounts));
            self.store(member, &members, &mut amounts);
            let mut amounts = amounts.times(member.executions * share);
            if is_shared && member.host.is_none() {
                amounts[Kind::Launches] = 1.0;
            }
            let held = self.held(&members, member.host);
            let seen =
                StageContext { member, loads: &loads, operations, held, members: members.len() };
            let stage = &self.dag.stages[member.stage];
            let features = Features::of(stage, &seen, &self.machine, parallel, &amounts);
            Description { stage: member.stage, amounts, features }
        };
        members.iter().map(describe).collect()
    }

    /// The bytes of a region of a tensor, whose rows may start and end within cache lines.
    fn bytes(region: &[i64], element: f64) -> f64 {
        let Some((row, others)) = region.split_last() else { return element };
        let rows: f64 = others.iter().map(|extent| *extent as f64).product();
        rows * (*row as f64 * element + LINE / 2.0)
    }

    /// The bytes of all live intermediates of a loop.
    fn held(&self, members: &[Member], host: Option<(usize, usize)>) -> f64 {
        let bytes = |member: &Member| {
            Self::bytes(&member.region, self.dag.stages[member.stage].element_bytes as f64)
        };
        members.iter().filter(|member| member.host == host).map(bytes).sum()
    }

    /// Adds the computation of a stage's elements, for one execution.
    fn compute(&self, member: &Member, operations: f64, loads: &[Load]) -> Amounts {
        let Machine { arithmetic, loads: ports, .. } = self.machine;
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
        // A partially filled body takes as long as a full one.
        let bodies = (last / body).ceil();
        let vectors = if is_vector { bodies * (body / lanes).ceil() } else { last };
        let reads: f64 = loads.iter().map(|load| load.reads).sum();
        let gathered: f64 = loads.iter().map(|load| load.gathered).sum();
        let one = (operations / arithmetic).max(reads / ports).max(1.0);
        let mut amounts = Amounts::default();
        if let Some(terms) = stage.scattered {
            // Sequential, with scattered accesses.
            amounts[Kind::Issue] = terms * one;
            amounts[Kind::Gathered] = terms;
            amounts[Kind::Starts] = 1.0;
            return amounts;
        }
        amounts[Kind::Issue] = rows * vectors * one * stage.terms();
        amounts[Kind::Gathered] = rows * last * gathered * stage.terms();
        amounts[Kind::Bodies] = rows * bodies;
        amounts[Kind::Terms] = rows * bodies * stage.terms();
        amounts[Kind::Rows] = rows;
        amounts[Kind::Starts] = 1.0;
        amounts
    }

    /// Adds the cost of a read, for one execution.
    fn load(&self, member: &Member, load: &Load, members: &[Member], amounts: &mut Amounts) {
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
        let inside = match load.source {
            Source::Stage(of) => {
                members.iter().find(|member| member.stage == of && member.host.is_some())
            }
            Source::Input(_) => None,
        };
        // Rows that a window reads again are still in the L1 cache, or come again from the L2
        // cache.
        amounts[Kind::Again] += self.again(member, load, element);
        let between = inside.map_or(whole, |made| self.held(members, made.host));
        let kinds = [Kind::LoadedNear, Kind::LoadedEdge, Kind::LoadedFar];
        if let Some(kind) = self.level(between, kinds) {
            amounts[kind] += Self::bytes(&load.region, element);
        }
    }

    /// The memory level of bytes that are reused after `between` other bytes; `None` for L1.
    fn level(&self, between: f64, [near, edge, far]: [Kind; 3]) -> Option<Kind> {
        let Machine { l1, l2, .. } = self.machine;
        match between {
            held if held <= l1 * 0.75 => None,
            held if held <= l2 * 0.75 => Some(near),
            held if held <= l2 * 1.5 => Some(edge),
            _ => Some(far),
        }
    }

    /// The bytes of window rows that do not stay in the L1 cache from one row of the stage to the
    /// next.
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
        (window - 1.0) * bytes * *own as f64 * others
    }

    /// Adds the cost of a stage's stores, for one execution. Stores to memory read the cache line
    /// first.
    fn store(&self, member: &Member, members: &[Member], amounts: &mut Amounts) {
        let stage = &self.dag.stages[member.stage];
        let bytes = Self::bytes(&member.region, stage.element_bytes as f64);
        let (bytes, between) = match member.host {
            Some(_) => (bytes, self.held(members, member.host)),
            None => (2.0 * bytes, stage.bytes()),
        };
        let kinds = [Kind::StoredNear, Kind::StoredEdge, Kind::StoredFar];
        if let Some(kind) = self.level(between, kinds) {
            amounts[kind] += bytes;
        }
    }

    /// The average number of busy workers while a group is computed.
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
