//! [`Split`]: a loop with its legal splits.

use tensorwright_schedule::access::Axis;
use tensorwright_space::parameter::{Domain, Factorization};

use crate::SpaceOptions;

/// Loops with fewer iterations are not split.
pub(crate) const FEWEST: i64 = 4;

/// A loop with its legal splits.
#[derive(Debug, Clone)]
pub(crate) struct Split {
    pub(crate) axis: Axis,
    /// The legal splits; `None` if it stays whole.
    pub(crate) tile: Option<Factorization>,
}

/// The reduction loops, with the legal splits of each. Windows are never split.
pub(crate) fn terms(axes: Vec<Axis>, options: &SpaceOptions) -> Vec<Split> {
    let split = |axis: Axis| {
        let extent = axis.extent.max(1) as u64;
        let tile = (axis.extent >= 4 * FEWEST)
            .then(|| Factorization::new(extent, options.reduce_levels, options.splits));
        Split::new(axis, tile)
    };
    axes.into_iter().map(split).collect()
}

/// The parameters of splittable loops, each with its name and the index of the loop.
pub(crate) fn tiles(splits: &[Split]) -> impl Iterator<Item = (String, usize, Domain)> {
    splits.iter().enumerate().filter_map(|(place, split)| {
        Some((format!("tile.{}", split.axis.name), place, split.tile.clone()?.into()))
    })
}

impl Split {
    /// A loop that is split in one of these ways, if there are several.
    pub(crate) fn new(axis: Axis, tile: Option<Factorization>) -> Self {
        let splits = |tile: &Factorization| tile.count() > 1;
        Self { axis, tile: tile.filter(splits) }
    }

    /// The number of iterations; at least one.
    pub(crate) fn extent(&self) -> i64 {
        self.axis.extent.max(1)
    }

    /// Whether it is split at all.
    pub(crate) fn is_tiled(&self) -> bool {
        self.tile.is_some()
    }

    /// The parts of the unsplit loop: all iterations are in the outermost.
    pub(crate) fn whole(&self) -> Vec<i64> {
        match &self.tile {
            Some(tile) => self.parts(tile.plain()),
            None => vec![self.axis.extent],
        }
    }

    /// The parts of a split, outermost first.
    pub(crate) fn parts(&self, rank: u32) -> Vec<i64> {
        match &self.tile {
            Some(tile) => tile.value(rank).iter().map(|part| part.cast_signed()).collect(),
            None => vec![self.axis.extent],
        }
    }

    /// The parts with exactly these inner ones, if they exist.
    pub(crate) fn exactly(&self, inner: &[i64]) -> Option<Vec<i64>> {
        let inner: Vec<u64> = inner.iter().map(|part| part.cast_unsigned()).collect();
        Some(self.parts(self.tile.as_ref()?.rank_of_inner(&inner)?))
    }

    /// The parts with these inner ones, or the nearest legal ones: with a smaller outermost
    /// non-unit inner part.
    pub(crate) fn nearest(&self, inner: &[i64]) -> Vec<i64> {
        let Some(tile) = &self.tile else { return self.whole() };
        let mut wanted: Vec<u64> = vec![1; tile.parts().saturating_sub(1)];
        for (to, from) in wanted.iter_mut().rev().zip(inner.iter().rev()) {
            *to = (*from).max(1).cast_unsigned();
        }
        while let Some(outermost) = wanted.iter().position(|part| *part > 1) {
            if let Some(rank) = tile.rank_of_inner(&wanted) {
                return self.parts(rank);
            }
            wanted[outermost] -= 1;
        }
        self.whole()
    }
}
