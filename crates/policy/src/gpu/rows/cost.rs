//! The cost of a row chain as one launch.

use tensorwright_machine::{Goal, Gpu};

use super::{Chain, RowStage};
use crate::gpu::cost::{BARRIER, BLOCK, LAUNCH, WARPS};

/// The estimated cycles of a chain with a number of threads per row.
pub(crate) fn cycles(chain: &Chain, threads: i64, gpu: &Gpu) -> f64 {
    let (units, warp) = (gpu.units.max(1) as f64, gpu.warp.max(1) as f64);
    let (rows, width) = (chain.of.rows as f64, threads as f64);
    let warps = (width / warp).ceil().max(1.0);
    let stage = |stage: &RowStage| {
        let rounds = (stage.length as f64 / width).ceil();
        // One thread combines the partial sums.
        let combine = if stage.is_sum { 2.0 * width } else { 0.0 };
        rounds * warps * stage.operations + combine + BARRIER * warps
    };
    let issue: f64 = chain.stages.iter().map(stage).sum();
    let resident = (gpu.shared_per_unit as f64 / chain.shared_bytes(threads).max(1) as f64).floor();
    let latency = match gpu.is_processor {
        true => 1.0,
        false => (WARPS / (resident.clamp(1.0, 32.0) * warps)).max(1.0),
    };
    let waves = (rows / units).ceil() * units / rows.max(1.0);
    let busy = (issue * latency * rows / units).max(chain.moved as f64 / gpu.bytes_per_cycle());
    busy * waves + LAUNCH + rows * BLOCK / units
}

/// The best number of threads per row, and its cycles.
pub(crate) fn best(chain: &Chain, goal: &Goal<Gpu>) -> Option<(i64, f64)> {
    let fused = chain.values.iter().filter(|threads| **threads > 1);
    let each = fused.map(|threads| (*threads, cycles(chain, *threads, &goal.target)));
    each.min_by(|a, b| a.1.total_cmp(&b.1))
}
