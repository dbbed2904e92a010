//! Row-wise fusion on GPUs: one launch per chain, one block per row.
//!
//! ```text
//! top(n) max=! x(n,d)                 block n {
//! e(n,d) = exp(x(n,d) - top(n))   ->    thread t { top.rf(t) max= x(n, t + T*i); }   barrier   top = max of top.rf
//! y(n,d) = ..                           thread t { e(t + T*i) = ..; }                barrier
//! ```

mod cost;
mod decode;

use tensorwright_machine::Gpu;
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::Accesses;
use tensorwright_schedule::nest::{Owner, Role};
use tensorwright_schedule::placement::store_of;
use tensorwright_space::Parameter;
use tensorwright_space::parameter::Discrete;

use super::groups::operations;
use crate::stages::ranks::number;
use crate::stages::rows::{self, Limits, Rows, iterations};

pub(crate) use cost::{best, cycles};
pub(crate) use decode::launch;

/// The candidate thread counts per row; one disables fusion.
const VALUES: [i64; 8] = [1, 16, 32, 64, 128, 256, 512, 1024];

/// Stages that may be one launch, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The stages.
    pub(crate) of: Rows,
    /// The work of each stage per row.
    stages: Vec<RowStage>,
    /// The bytes that all blocks read and write in memory.
    moved: i64,
    /// The legal thread counts.
    values: Vec<i64>,
    /// The index of its parameter in the sketch.
    pub(crate) parameter: usize,
}

/// The work of a stage per row.
#[derive(Debug, Clone)]
struct RowStage {
    /// The elements of a row, or the terms of a sum.
    length: i64,
    /// The instructions of an element or a term.
    operations: f64,
    /// Whether it is a sum over a row.
    is_sum: bool,
}

/// Finds the chains among the unscheduled stages of a draft.
pub(crate) fn find(draft: &ScheduleState, gpu: &Gpu) -> Vec<Chain> {
    // Partial sums need space as well.
    let limits = Limits { room: gpu.declared_shared() * 3 / 4, sibling_workers: None };
    let found = rows::find(draft, limits);
    found.into_iter().filter_map(|of| chain(draft, of, gpu)).collect()
}

fn chain(draft: &ScheduleState, of: Rows, gpu: &Gpu) -> Option<Chain> {
    let stage = |name: &String| {
        let store = store_of(&of.fused.nest, name)?;
        let accesses = Accesses::of(&of.fused.nest, name)?;
        let depth = if *name == of.root { of.depth } else { 0 };
        let results = iterations(accesses.of_role(Role::Spatial).skip(depth));
        let terms = iterations(accesses.of_role(Role::Reduce));
        let reads = accesses.reads.len() as f64;
        Some(RowStage {
            length: results.saturating_mul(terms),
            operations: operations(store) + reads,
            is_sum: terms > 1 && results == 1,
        })
    };
    let stages = of.stages.iter().map(stage).collect::<Option<Vec<_>>>()?;
    let longest = stages.iter().map(|stage| stage.length).max()?;
    let most = longest.min(gpu.threads_per_block);
    let values: Vec<i64> = VALUES.into_iter().filter(|value| *value <= most).collect();
    let moved = moved(draft, &of);
    Some(Chain { of, stages, moved, values, parameter: usize::MAX })
}

/// The bytes of all tensors that are read from or written to memory.
fn moved(draft: &ScheduleState, of: &Rows) -> i64 {
    let mut seen = Vec::new();
    let mut bytes = 0i64;
    for name in &of.stages {
        let Some(accesses) = Accesses::of(&of.fused.nest, name) else { continue };
        for access in accesses.reads.iter().chain([&accesses.write]) {
            let buffer = draft.nest.buffer(access.buffer);
            let is_held = buffer.owner == Owner::Intermediate && of.has(&buffer.name);
            if !is_held && !seen.contains(&access.buffer) {
                seen.push(access.buffer);
                bytes = bytes.saturating_add(buffer.bytes());
            }
        }
    }
    bytes
}

impl Chain {
    /// Its parameter.
    pub(crate) fn knob_parameter(&self) -> Parameter {
        let values = Discrete::new(self.values.iter().copied());
        Parameter::new(format!("{}:row_threads", self.of.root), values)
    }

    /// The threads per row for the ranks of all parameters; one without fusion.
    pub(crate) fn threads(&self, parameters: &[Parameter], ranks: &[u32]) -> i64 {
        match (parameters.get(self.parameter), ranks.get(self.parameter)) {
            (Some(parameter), Some(rank)) => number(parameter.domain(), *rank, 1),
            _ => 1,
        }
    }

    /// The rank of a thread count.
    pub(crate) fn rank(&self, threads: i64) -> u32 {
        let place = self.values.iter().position(|value| *value == threads);
        place.and_then(|place| u32::try_from(place).ok()).unwrap_or(0)
    }

    /// Why rows cannot have this thread count.
    pub(crate) fn refusal(&self, threads: i64, gpu: &Gpu) -> Option<String> {
        let (bytes, most) = (self.shared_bytes(threads), gpu.declared_shared());
        (bytes > most).then(|| format!("a row needs {bytes} bytes of shared memory, limit {most}"))
    }

    /// The shared bytes of a block.
    fn shared_bytes(&self, threads: i64) -> i64 {
        let sums = self.stages.iter().filter(|stage| stage.is_sum).count();
        let partial = threads.saturating_mul(8).saturating_mul(i64::try_from(sums).unwrap_or(1));
        self.of.bytes.saturating_add(partial)
    }
}
