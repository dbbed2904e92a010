//! [`GpuModel`]: an analytical cost model for GPUs.
//!
//! The terms follow the features of Appendix A: warp instructions, loads from shared memory and
//! from memory by touched lines, occupancy by shared memory, idle lanes, waves of blocks, launches.
//! A group is a launch: its root has blocks and threads; stages computed in a block are shared by
//! its threads, and stages computed in a thread are in registers. The constants fit no particular
//! device.

use tensorwright_machine::{Goal, Gpu};

use crate::dag::{Dag, Source};
use crate::levels::Levels;
use crate::state::{Layout, Load, Member};

use super::CostModel;

/// Cycles to launch a kernel.
const LAUNCH: f64 = 5_000.0;

/// Cycles to start a block.
const BLOCK: f64 = 200.0;

/// Cycles of a warp per barrier.
const BARRIER: f64 = 20.0;

/// Bytes of a memory line.
const LINE: f64 = 64.0;

/// The cost of a cached load relative to shared memory, where these differ.
const FROM_CACHE: f64 = 3.0;

/// The warps per multiprocessor that hide latency.
const WARPS: f64 = 8.0;

/// The fraction of repeated reads by the threads of a block that go to memory.
const AGAIN: f64 = 0.25;

/// The levels of loops.
const BLOCKS: usize = 0;
const THREADS: usize = 1;

/// Costs in cycles on a GPU.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_pipeline::{Dag, Levels, GpuModel, BeamOptions, search};
/// use tensorwright_machine::{Goal, Target};
///
/// let text = "def blur(float(H,W) in) -> (out) {
///   bx(y,x) = in(y,x) + in(y,x+1)
///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
/// }";
/// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 2000), ("W", 2000)])?;
/// let target = Target::named("cuda:sm_80")?;
/// let goal = Goal::new(target.gpu().ok_or("a GPU")?.clone());
/// let (dag, levels) = (Dag::new(&program), Levels::of_gpu(&goal));
/// let found = search(&dag, &levels, &GpuModel::new(&dag, &levels, &goal), &BeamOptions::greedy());
/// // One launch: `bx` is computed in the blocks of `out`, or wherever it is read.
/// assert!(!found.states[0].0.text(&dag, &levels).contains("bx: root"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GpuModel<'a> {
    dag: &'a Dag,
    levels: &'a Levels,
    gpu: &'a Gpu,
}

/// A group as a launch.
struct Launch {
    blocks: f64,
    threads: f64,
    /// The slowdown of a warp because too few others hide its latency.
    latency: f64,
    /// The slowdown of all blocks because the last wave does not fill all multiprocessors.
    waves: f64,
}

impl<'a> GpuModel<'a> {
    /// The model for a GPU.
    #[must_use]
    pub fn new(dag: &'a Dag, levels: &'a Levels, goal: &'a Goal<Gpu>) -> Self {
        Self { dag, levels, gpu: &goal.target }
    }

    fn launch(&self, members: &[Member], root: &Member) -> Launch {
        let (units, warp) = (self.gpu.units.max(1) as f64, self.gpu.warp.max(1) as f64);
        let trips = |level: usize| -> f64 {
            let trips = root.tiling.as_ref().map(|tiling| tiling.trips(level, &root.region));
            trips.into_iter().flatten().map(|trips| trips as f64).product()
        };
        let (blocks, threads) = match root.tiling {
            Some(_) => (trips(BLOCKS), trips(THREADS)),
            // Undecided, or left to rules: assumes the best case.
            None => ((elements(&root.region) / warp).ceil().max(1.0), warp),
        };
        let in_block = members.iter().filter(|member| level_of(member) == Some(BLOCKS));
        let shared: f64 =
            in_block.map(|member| elements(&member.region) * self.bytes_of(member)).sum();
        let resident = (self.gpu.shared_per_unit as f64 / shared.max(1.0)).clamp(1.0, 32.0).floor();
        let warps = (threads / warp).ceil().max(1.0);
        let latency = match self.gpu.is_processor {
            true => 1.0,
            false => (WARPS / (resident * warps)).max(1.0),
        };
        Launch {
            blocks,
            threads,
            latency,
            waves: (blocks / units).ceil() * units / blocks.max(1.0),
        }
    }

    fn bytes_of(&self, member: &Member) -> f64 {
        self.dag.stages[member.stage].element_bytes as f64
    }

    /// The tile of a stage per block.
    fn of_block(member: &Member) -> Vec<i64> {
        let tile = member.tiling.as_ref().and_then(|tiling| tiling.tile(BLOCKS));
        tile.map_or_else(|| member.region.clone(), <[i64]>::to_vec)
    }

    /// The tile of a stage per thread.
    fn of_thread(member: &Member) -> Vec<i64> {
        match (level_of(member), &member.tiling) {
            (None, Some(tiling)) => tiling.tile(THREADS).unwrap_or(&member.region).to_vec(),
            (Some(THREADS), _) => member.region.clone(),
            _ => vec![1; member.region.len()],
        }
    }

    /// The cycles of one stage of a launch.
    fn stage(
        &self,
        layout: &Layout<'_>,
        members: &[Member],
        member: &Member,
        launch: &Launch,
    ) -> f64 {
        let (units, warp) = (self.gpu.units.max(1) as f64, self.gpu.warp.max(1) as f64);
        let stage = &self.dag.stages[member.stage];
        let (tile, own) = (Self::of_block(member), Self::of_thread(member));
        let (loads, operations) = layout.loads(member.stage, &tile);
        let (near, _) = layout.loads(member.stage, &own);
        let price = |load: &Load| {
            // A thread reads shared operands of its results once.
            let region = near.iter().find(|of_thread| of_thread.source == load.source);
            let distinct =
                region.map_or(f64::INFINITY, |near| elements(&near.region) / elements(&own));
            let reads = load.reads.min(distinct.max(1.0 / 16.0) * stage.terms().max(1.0));
            let apart = if load.reads > 0.0 { load.gathered / load.reads } else { 0.0 };
            let lines = 1.0 + apart * (LINE / self.element(load.source) - 1.0).clamp(0.0, 7.0);
            reads * lines * self.distance(members, load.source)
        };
        let term = operations + loads.iter().map(price).sum::<f64>();
        let per_block = match level_of(member) {
            Some(THREADS) => elements(&member.region) * launch.threads,
            _ if member.tiling.is_none() => elements(&member.region) / launch.blocks,
            _ => elements(&tile),
        };
        // Lanes beyond the last element are idle.
        let rounds = (per_block / launch.threads.max(1.0)).ceil();
        let warps = (launch.threads / warp).ceil().max(1.0);
        let issue = rounds * warps * term * stage.terms().max(1.0) * launch.latency;
        let barrier = if level_of(member) == Some(BLOCKS) { 2.0 * BARRIER * warps } else { 0.0 };
        let cycles = (issue + barrier) * launch.blocks * launch.waves / units;
        cycles.max(self.moved(members, member, &loads, launch) * launch.waves)
    }

    /// The latency of a load of a tensor in cycles.
    fn distance(&self, members: &[Member], source: Source) -> f64 {
        let made = members.iter().find(|member| Source::Stage(member.stage) == source);
        match made.and_then(level_of) {
            Some(THREADS) => 0.25,
            Some(_) => 1.0,
            None if self.gpu.is_processor => 1.0,
            None => FROM_CACHE,
        }
    }

    fn element(&self, source: Source) -> f64 {
        let bytes = match source {
            Source::Stage(of) => self.dag.stages[of].element_bytes,
            Source::Input(of) => self.dag.inputs[of].element_bytes,
        };
        bytes.max(1) as f64
    }

    /// The memory cycles of a stage's reads and writes.
    fn moved(&self, members: &[Member], member: &Member, loads: &[Load], launch: &Launch) -> f64 {
        let per_cycle = self.gpu.bytes_per_cycle();
        let is_here = |source: Source| {
            let made = members.iter().find(|member| Source::Stage(member.stage) == source);
            made.and_then(level_of).is_some()
        };
        let whole = |source: Source| match source {
            Source::Stage(of) => self.dag.stages[of].bytes(),
            Source::Input(of) => self.dag.inputs[of].bytes as f64,
        };
        let mut bytes = 0.0;
        for load in loads.iter().filter(|load| !is_here(load.source)) {
            let once = whole(load.source);
            let all = elements(&load.region) * self.element(load.source) * launch.blocks;
            let again = if once < self.gpu.l2 as f64 { AGAIN } else { 2.0 * AGAIN };
            bytes += if member.tiling.is_none() {
                once
            } else {
                all.min(once) + (all - once).max(0.0) * again
            };
        }
        if level_of(member).is_none() {
            bytes += self.dag.stages[member.stage].bytes();
        }
        bytes / per_cycle
    }
}

/// The level of the loop that a stage is computed at.
fn level_of(member: &Member) -> Option<usize> {
    member.host.map(|(_, level)| level)
}

fn elements(region: &[i64]) -> f64 {
    region.iter().map(|extent| *extent as f64).product::<f64>().max(1.0)
}

impl CostModel for GpuModel<'_> {
    fn group(&self, layout: &Layout<'_>, group: usize) -> Vec<(usize, f64)> {
        let members = layout.members(group);
        let Some(root) = members.first() else { return Vec::new() };
        debug_assert!(self.levels.count() > THREADS, "blocks and threads");
        let launch = self.launch(&members, root);
        let units = self.gpu.units.max(1) as f64;
        let cost = |member: &Member| {
            let begins = match member.host {
                None => LAUNCH + launch.blocks * BLOCK / units,
                Some(_) => 0.0,
            };
            (member.stage, begins + self.stage(layout, &members, member, &launch))
        };
        members.iter().map(cost).collect()
    }
}
