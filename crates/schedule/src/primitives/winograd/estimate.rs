//! Cost model for `winograd`: estimates work and memory traffic per tile size.

use super::Winograd;
use super::pattern::{FilteredAxis, Pattern};
use crate::access::Accesses;
use crate::nest::{LoopNest, Role};

/// The operations of a core in the time that a byte takes to arrive from outside its private
/// caches. Between 10 and 20 on current machines; it only decides close cases.
const OPERATIONS_PER_BYTE: f64 = 16.0;

/// The relative speed of the products: slightly slower than a long direct sum.
const SHORTER_SUMS: f64 = 1.15;

/// The tile sizes to try.
const TILES: [i64; 3] = [2, 3, 4];

/// The variants of Winograd's algorithm that may pay for a stage, fastest first, with the estimated
/// speedup over the direct sum.
#[must_use]
pub fn winograd_choices(nest: &LoopNest, stage: &str) -> Vec<(Winograd, f64)> {
    let Some(accesses) = Accesses::of(nest, stage) else { return Vec::new() };
    let spatial: Vec<String> =
        accesses.of_role(Role::Spatial).filter(|a| a.extent > 1).map(|a| a.name.clone()).collect();
    let slides =
        |name: &&String| Pattern::of(nest, stage, std::slice::from_ref(name), TILES[0]).is_ok();
    let sliding: Vec<String> = spatial.iter().filter(slides).cloned().collect();
    // The innermost dimensions: others are usually short.
    let targets = sliding[sliding.len().saturating_sub(2)..].to_vec();
    if targets.is_empty() {
        return Vec::new();
    }
    let choice = |results: &i64| {
        let pattern = Pattern::of(nest, stage, &targets, *results).ok()?;
        let choice = Winograd { targets: targets.clone(), results: *results };
        Some((choice, gain(nest, &pattern)))
    };
    let mut choices: Vec<(Winograd, f64)> = TILES.iter().filter_map(choice).collect();
    choices.sort_by(|a, b| b.1.total_cmp(&a.1));
    choices
}

fn gain(nest: &LoopNest, pattern: &Pattern) -> f64 {
    let product =
        |extents: &mut dyn Iterator<Item = i64>| extents.map(|n| n as f64).product::<f64>();
    let bytes = nest.dtype(pattern.store.buffer).bytes() as f64;
    let elements = |id| nest.buffer(id).elements() as f64;
    let (data, weight) = (elements(pattern.data.tensor), elements(pattern.weight.tensor));
    let result = elements(pattern.store.buffer);
    let all = product(&mut pattern.loops.iter().map(|l| l.extent));
    let direct = 2.0 * all + OPERATIONS_PER_BYTE * bytes * (data + weight + result);

    let filters = &pattern.filters;
    let products = product(&mut filters.iter().map(|f| f.filter.products() as i64));
    let taps = product(&mut filters.iter().map(|f| f.r.extent));
    let places = product(&mut filters.iter().map(|f| f.y.extent));
    let tiles = product(&mut filters.iter().map(FilteredAxis::tiles));
    let multiplied = 2.0 * all / (places * taps) * tiles * products;
    let inputs = product(&mut filters.iter().map(|f| f.y.extent + f.r.extent - 1));
    let factors = products * tiles * data / inputs;
    let sums = products * tiles * result / places;
    // Each intermediate is written once and read once.
    let moved = data + result + weight / taps * products + 2.0 * (factors + sums);
    direct / (SHORTER_SUMS * multiplied + OPERATIONS_PER_BYTE * bytes * moved)
}
