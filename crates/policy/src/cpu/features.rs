//! Features of a tiling for learned models, beyond its parameters.

use crate::cpu::group::{Group, Packable};
use crate::cpu::tiling::Tiling;
use crate::stages::operand::Mover;

/// Logarithms of the sizes that determine performance: accumulators, vectors, terms and loads per
/// multiplication, and the tiles in the L1 and L2 caches.
pub(crate) fn features(group: &Group, tiling: &Tiling) -> [f32; 8] {
    let log = |x: i64| (x.max(1) as f32).log2();
    let accumulators = tiling.accumulators();
    let rows = accumulators / tiling.vectors().max(1);
    let loads = (rows + tiling.vectors()) as f32 / accumulators.max(1) as f32;
    let terms: i64 = tiling.reduce.iter().map(|parts| parts[1..].iter().product::<i64>()).product();
    let outer: i64 = tiling.spatial.iter().map(|parts| parts[0]).product();
    [
        log(accumulators),
        log(tiling.lanes()),
        log(tiling.vectors()),
        loads,
        log(terms),
        log(outer),
        log(footprint(group, tiling, false)),
        log(footprint(group, tiling, true)),
    ]
}

/// The bytes of operands read by a register tile or by a whole inner tile.
fn footprint(group: &Group, tiling: &Tiling, whole_tile: bool) -> i64 {
    let operand = |pack: &Packable| {
        pack.moved_by.iter().fold(pack.element_bytes, |bytes, movers| {
            let reach = movers.iter().fold(1i64, |reach, mover| {
                let (extent, distance) = match *mover {
                    Mover::Spatial(axis, distance) if whole_tile => (tiling.tile(axis), distance),
                    Mover::Spatial(axis, distance) => (tiling.register(axis), distance),
                    Mover::Reduce(axis, distance) => {
                        (tiling.reduce[axis][1..].iter().product::<i64>(), distance)
                    }
                };
                reach.saturating_add((extent - 1).saturating_mul(distance.abs()))
            });
            bytes.saturating_mul(reach)
        })
    };
    group.packs.iter().map(operand).fold(0, i64::saturating_add)
}
