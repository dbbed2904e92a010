//! The cost of a product on tensor cores.

use tensorwright_machine::{Goal, Gpu};
use tensorwright_schedule::nest::{TILE, WARP};

use super::{Product, Shape};
use crate::gpu::cost::{BARRIER, BLOCK, LAUNCH};
use crate::gpu::group::Group;

/// The `half` multiplications per cycle of a multiprocessor (NVIDIA's A100).
const PER_CYCLE: f64 = 1024.0;

/// Cycles of a warp to load a tile of a factor from shared memory.
const LOAD: f64 = 8.0;

/// Cycles of a warp per element copied to shared memory: a load, a store, and two address
/// computations.
const COPY: f64 = 4.0;

/// The number of warps that keeps tensor cores busy.
const BUSY: f64 = 8.0;

/// The estimated cycles of a product in a shape.
pub(crate) fn cycles(product: &Product, group: &Group, shape: &Shape, gpu: &Gpu) -> f64 {
    let results: f64 = group.spatial.iter().map(|split| split.extent() as f64).product();
    let [rows, columns] = shape.block().map(|extent| extent as f64);
    let (blocks, terms) = (results / (rows * columns), group.terms());
    let units = gpu.units.max(1) as f64;
    let waves = (blocks / units).ceil() * units / blocks.max(1.0);
    let [tiles_m, tiles_n] = shape.tiles.map(|tiles| tiles as f64);
    let warps = (shape.threads() / WARP) as f64;
    let shared = product.shared_bytes(group, shape).max(1) as f64;
    let registers = (tiles_m * tiles_n * 8.0 + 64.0) * shape.threads() as f64;
    let resident = (gpu.shared_per_unit as f64 / shared)
        .min(gpu.registers_per_unit as f64 / registers)
        .clamp(1.0, 16.0)
        .floor();
    let latency = (BUSY / (resident * warps)).max(1.0);
    let rate = if product.is_tf32 { PER_CYCLE / 2.0 } else { PER_CYCLE };
    let arithmetic = results * terms / rate / units;
    let per_warp = (tiles_m + tiles_n) * LOAD * terms / TILE as f64;
    let steps = terms / shape.terms as f64;
    let copied = (rows + columns) * terms / shape.threads() as f64 * COPY;
    let of_block = warps * (per_warp + copied) + 2.0 * BARRIER * warps * steps;
    let issue = (arithmetic + of_block * blocks / units) * latency;
    let moved = (rows + columns) * terms * product.bytes as f64
        + rows * columns * group.write.element_bytes as f64;
    let distinct = results * group.write.element_bytes as f64;
    // Data shared by several blocks is in the L2 cache for most of them.
    let memory = (distinct + (moved * blocks - distinct).max(0.0) * 0.25) / gpu.bytes_per_cycle();
    issue.max(memory) * waves + LAUNCH + blocks * BLOCK / units
}

/// The best shape of a product, and its cycles.
pub(crate) fn best(product: &Product, group: &Group, goal: &Goal<Gpu>) -> Option<(Shape, f64)> {
    let fits = |shape: &Shape| product.refusal(group, shape, &goal.target).is_none();
    let each = Shape::all().filter(fits);
    let each = each.map(|shape| (shape, cycles(product, group, &shape, &goal.target)));
    each.min_by(|a, b| a.1.total_cmp(&b.1))
}
