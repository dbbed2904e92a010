//! The tilings of a stage: per level, outermost first (4.1 to 4.3).

use crate::levels::{Level, LevelKind, Levels};
use crate::state::Tiling;

/// All tilings of a region, for the levels from `first` on.
pub(super) fn tilings(levels: &Levels, first: usize, region: &[i64]) -> Vec<Tiling> {
    let mut found = vec![Vec::new()];
    for level in levels.list.iter().skip(first) {
        let longer = |tiles: &Vec<Vec<i64>>| {
            let around = tiles.last().map_or(region, Vec::as_slice);
            let with = |tile| tiles.iter().cloned().chain([tile]).collect::<Vec<Vec<i64>>>();
            if first > 0 && level.is_shared {
                return vec![with(vec![1; region.len()])];
            }
            self::tiles(level, around).into_iter().map(with).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    found.into_iter().map(|tiles| Tiling { first, tiles }).collect()
}

/// The tiles of a level inside a region.
fn tiles(level: &Level, around: &[i64]) -> Vec<Vec<i64>> {
    let rank = around.len();
    let mut found: Vec<Vec<i64>> = vec![Vec::new()];
    for (dimension, extent) in around.iter().enumerate() {
        let is_last = dimension + 1 == rank;
        let mut sizes: Vec<i64> = match () {
            () if is_last => level.inner.clone(),
            () if dimension + 2 == rank => level.outer.clone(),
            // Further dimensions are split at the outermost level, or not at all.
            () if level.kind == LevelKind::Tiles => Vec::new(),
            () => vec![1],
        };
        sizes.retain(|size| size < extent);
        // A body is at most as large as its region.
        if level.is_optional || sizes.is_empty() {
            sizes.push(*extent);
        }
        let longer = |tile: &Vec<i64>| {
            let with = |size: &i64| tile.iter().copied().chain([*size]).collect::<Vec<i64>>();
            sizes.iter().map(with).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    found
}
