//! Analytical cost model of GPU tilings: occupancy, coalescing, arithmetic intensity, launches.
//!
//! A block takes the larger of its arithmetic and memory times; blocks run on the available
//! multiprocessors. The constants fit no particular device: they rank tilings, and measurements
//! decide.

use tensorwright_machine::{Goal, Gpu};

use super::group::Group;
use super::tiling::Tiling;
use crate::stages::operand::Operand;

/// The names of the terms.
pub(crate) const TERMS: [&str; 4] = ["arithmetic", "loads", "memory", "launches"];

/// Cycles to launch a kernel.
pub(super) const LAUNCH: f64 = 5_000.0;

/// Cycles to start a block.
pub(super) const BLOCK: f64 = 200.0;

/// Cycles of a barrier of a block, per warp.
pub(super) const BARRIER: f64 = 20.0;

/// Bytes of a memory line.
const LINE: f64 = 64.0;

/// Cycles of a warp's load that hits a nearby line.
const LOAD: f64 = 1.0;

/// The warps per multiprocessor that hide latency.
pub(super) const WARPS: f64 = 8.0;

/// The cost of a cached load relative to shared memory, where these differ.
const FROM_CACHE: f64 = 3.0;

/// The slowdown of arithmetic on CPUs with barriers in the loop: private variables live in memory
/// across a barrier, and compilers do not vectorize loops that contain one. Measured with
/// convolutions on Intel's OpenCL: 20 to 40 times.
const ACROSS_BARRIERS: f64 = 16.0;

/// Registers for positions and counters.
const SPARE: i64 = 4;

/// The registers of a thread: its results, and its reads per term.
pub(crate) fn registers(group: &Group, tiling: &Tiling) -> i64 {
    let extents = tiling.of_thread();
    let read: f64 = match group.is_reduction() {
        // Values along one direction stay in registers, those along the other are loaded one at a
        // time.
        true => {
            let each = group.reads.iter().map(|read| read.elements(&extents));
            each.fold(f64::INFINITY, f64::min)
        }
        false => 1.0,
    };
    let words = (group.write.element_bytes + 3) / 4;
    let read = if read.is_finite() { read as i64 } else { 1 };
    tiling.accumulators().saturating_add(read).saturating_mul(words) + SPARE
}

/// The estimated cycles of a group.
pub(crate) fn cycles(group: &Group, tiling: &Tiling, goal: &Goal<Gpu>) -> f64 {
    let [arithmetic, loads, memory, launches] = terms(group, tiling, goal);
    (arithmetic + loads).max(memory) + launches
}

/// The terms of the estimate.
pub(crate) fn terms(group: &Group, tiling: &Tiling, goal: &Goal<Gpu>) -> [f64; TERMS.len()] {
    let gpu = &goal.target;
    let (warps, blocks) = (warps(tiling, gpu), tiling.blocks(group));
    let units = gpu.units.max(1) as f64;
    // Waves of blocks: all wait for the last one.
    let waves = (blocks / units).ceil() * units / blocks.max(1.0);
    let results = blocks * warps * tiling.accumulators() as f64;
    let terms = (group.terms() / tiling.sharers as f64).max(1.0);
    // A warp needs other warps, or independent work of its own, to hide latency.
    let in_flight = warps * tiling.accumulators() as f64;
    let latency = (4.0 / in_flight).max(WARPS / resident_warps(group, tiling, gpu)).max(1.0);
    let waits = gpu.is_processor && tiling.staged.contains(&true);
    let latency = if waits { latency * ACROSS_BARRIERS } else { latency };
    let arithmetic = results * terms * group.operations * latency / units * waves;
    let per_term = loads_per_term(group, tiling, gpu) * latency;
    let combine = if tiling.shares_sum() { tiling.sharers as f64 * 2.0 } else { 0.0 };
    let loads = blocks * warps * (per_term * terms + combine) * LOAD / units * waves;
    let (staging, memory) = traffic(group, tiling, gpu);
    let loads = loads + staging * blocks * warps / units * waves;
    [arithmetic, loads, memory * waves, LAUNCH + blocks * BLOCK / units]
}

/// The warps of a block. CPUs vectorize only threads that are adjacent in x.
fn warps(tiling: &Tiling, gpu: &Gpu) -> f64 {
    let (warp, threads) = (gpu.warp.max(1), tiling.threads_of_block());
    let together = match (gpu.is_processor, tiling.shares_sum()) {
        (true, false) => tiling.threads(tiling.x).max(1),
        (true, true) => tiling.sharers,
        (false, _) => threads,
    };
    ((together + warp - 1) / warp * (threads / together)).max(1) as f64
}

/// The number of resident warps per multiprocessor.
fn resident_warps(group: &Group, tiling: &Tiling, gpu: &Gpu) -> f64 {
    /// The maximum number of resident blocks.
    const BLOCKS: f64 = 32.0;
    /// Registers that compilers use for addresses, counters and prefetched values.
    const ADDRESSES: i64 = 28;
    if gpu.is_processor {
        return f64::INFINITY;
    }
    let warps = warps(tiling, gpu);
    let by_shared = gpu.shared_per_unit as f64 / tiling.shared_bytes(group).max(1.0);
    let of_warp = (registers(group, tiling) + ADDRESSES) * gpu.warp.max(1);
    let by_registers = gpu.registers_per_unit as f64 / (of_warp as f64 * warps);
    by_shared.min(by_registers).min(BLOCKS).floor().max(1.0) * warps
}

/// The loads of a warp per term: the reads of a thread, times the memory lines per read of a warp.
fn loads_per_term(group: &Group, tiling: &Tiling, gpu: &Gpu) -> f64 {
    let extents = tiling.of_thread();
    let from_cache = if gpu.is_processor { 1.0 } else { FROM_CACHE };
    let load = |read: &Operand| {
        let is_staged = is_staged(group, tiling, &read.tensor);
        let lines = match is_staged {
            true => 1.0,
            false => from_cache * lines(group, tiling, read, gpu.warp.max(1) as f64),
        };
        read.elements(&extents) * lines
    };
    let mut seen: Vec<&str> = Vec::new();
    let mut sum = 0.0;
    for read in &group.reads {
        // Elements of a window are mostly in lines that other reads load.
        let again = if seen.contains(&read.tensor.as_str()) { 0.5 } else { 1.0 };
        sum += load(read) * again;
        seen.push(&read.tensor);
    }
    sum
}

fn is_staged(group: &Group, tiling: &Tiling, tensor: &str) -> bool {
    let mut all = group.staged.iter().zip(&tiling.staged);
    all.any(|(name, is_staged)| *is_staged && name == tensor)
}

/// The lines that a load of a warp touches, relative to a coalesced load.
fn lines(group: &Group, tiling: &Tiling, read: &Operand, warp: f64) -> f64 {
    let (stride, along) = match (tiling.shares_sum(), group.shared_sum) {
        (true, Some(place)) => (read.reduce[place], tiling.sharers),
        _ => {
            let stride = read.spatial.get(tiling.x).copied().flatten();
            (stride.map(|stride| stride * tiling.inner(tiling.x)), tiling.threads(tiling.x))
        }
    };
    let together = (along as f64).clamp(1.0, warp);
    let rows = warp / together;
    let bytes = match stride {
        Some(0) => return rows.min(2.0),
        Some(stride) => stride.abs() as f64 * read.element_bytes as f64,
        None => LINE,
    };
    let touched = (together * bytes.min(LINE) / LINE).ceil().max(1.0);
    let whole = (together * read.element_bytes as f64 / LINE).ceil().max(1.0);
    (touched / whole * rows.min(2.0)).max(1.0)
}

/// Cycles of a warp for staging and barriers, and cycles of memory for all blocks.
fn traffic(group: &Group, tiling: &Tiling, gpu: &Gpu) -> (f64, f64) {
    let extents = tiling.of_block();
    let steps: f64 = (0..tiling.reduce.len())
        .map(|axis| (group.reduce[axis].extent() as f64 / tiling.step(axis).max(1) as f64).ceil())
        .product();
    let threads = tiling.threads_of_block().max(1) as f64;
    let warps = warps(tiling, gpu);
    let (mut staging, mut bytes) = (0.0, 0.0);
    let mut seen: Vec<&str> = Vec::new();
    for read in &group.reads {
        if seen.contains(&read.tensor.as_str()) {
            continue;
        }
        seen.push(&read.tensor);
        let footprint = read.footprint(&extents, false);
        bytes += footprint * steps;
        if is_staged(group, tiling, &read.tensor) {
            let elements = read.elements(&extents);
            // A load, a store to shared memory, and two address computations.
            staging += (elements / threads).ceil() * 4.0 * steps;
        }
    }
    if tiling.staged.contains(&true) {
        staging += 2.0 * BARRIER * warps * steps;
    }
    bytes += group.write.footprint(&extents, false);
    let per_cycle = gpu.bytes_per_cycle();
    // Data shared by several blocks is in the L2 cache for most of them.
    let total: f64 = bytes * tiling.blocks(group);
    let distinct = distinct_bytes(group);
    let cached = if distinct < gpu.l2.max(1) as f64 { 0.25 } else { 0.5 };
    (staging, (distinct + (total - distinct).max(0.0) * cached) / per_cycle)
}

/// The bytes of all tensors.
fn distinct_bytes(group: &Group) -> f64 {
    let mut seen: Vec<&str> = Vec::new();
    let mut bytes = 0.0;
    for operand in group.reads.iter().chain([&group.write]) {
        if !seen.contains(&operand.tensor.as_str()) {
            let elements: f64 = operand.shape.iter().map(|extent| *extent as f64).product();
            bytes += elements * operand.element_bytes as f64;
            seen.push(&operand.tensor);
        }
    }
    bytes
}
