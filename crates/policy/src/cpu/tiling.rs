//! [`Tiling`]: the scheduling decisions of a group.

use tensorwright_schedule::primitives::Tail;

use crate::cpu::group::{Group, Vector};
use crate::stages::split::Split;

/// Where a tensor is packed into panels in reading order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackAt {
    /// Not packed: it is read in place.
    Nowhere,
    /// Laid out once, ahead of all calls.
    Laid,
    /// At the outermost loop.
    Outer,
    /// At the last of the outermost spatial loops.
    Middle,
    /// At the innermost loop around the innermost reduction loops.
    Inner,
}

/// How results are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreBy {
    /// Directly from registers.
    Direct,
    /// Transposed through a tile in the L1 cache.
    Transposed,
}

/// The compute location of a reduction with an epilogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FuseAt {
    /// Inside the tiles of the epilogue.
    Tile,
    /// At the root level.
    Apart,
}

/// The scheduling decisions of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tiling {
    /// The parts of the spatial loops, outermost first.
    pub(crate) spatial: Vec<Vec<i64>>,
    /// The parts of the reduction loops.
    pub(crate) reduce: Vec<Vec<i64>>,
    /// Where each packable tensor is packed.
    pub(crate) packs: Vec<PackAt>,
    /// The order of the outermost spatial loops.
    pub(crate) outer_order: Vec<usize>,
    /// The order of the second last spatial loops and the outer reduction loops: those that are
    /// split, spatial first.
    pub(crate) middle_order: Vec<usize>,
    /// The order of the innermost reduction loops.
    pub(crate) reduce_order: Vec<usize>,
    pub(crate) vector: Vector,
    /// The unroll factor of the innermost reduction loop.
    pub(crate) unroll: i64,
    /// The tail strategy of scalar loops.
    pub(crate) tail: Tail,
    /// The tail strategy of the vectorized loop.
    pub(crate) vector_tail: Tail,
    pub(crate) store: StoreBy,
    pub(crate) fuse: FuseAt,
    /// The number of parallel outermost loops.
    pub(crate) parallel: i64,
}

impl Tiling {
    /// Vectorized only: loops are whole and in order. Decisions without a parameter stay so.
    pub(crate) fn plain(group: &Group) -> Self {
        let split = group.spatial.iter().chain(&group.reduce).filter(|split| split.is_tiled());
        Self {
            spatial: group.spatial.iter().map(Split::whole).collect(),
            reduce: group.reduce.iter().map(Split::whole).collect(),
            packs: vec![PackAt::Nowhere; group.packs.len()],
            outer_order: (0..group.spatial.len()).collect(),
            middle_order: (0..split.count()).collect(),
            reduce_order: (0..group.reduce.len()).collect(),
            vector: group.vectors.first().copied().unwrap_or(Vector::Scalar),
            unroll: 1,
            tail: Tail::Peel,
            vector_tail: Tail::Peel,
            store: StoreBy::Direct,
            fuse: FuseAt::Tile,
            parallel: 0,
        }
    }

    /// Whether a reduction loop is vectorized: partial results in the lanes are combined at the
    /// end.
    pub(crate) fn sums_in_lanes(&self) -> bool {
        matches!(self.vector, Vector::Reduce { .. })
    }

    /// Whether a reduction is computed inside the tiles of its epilogue.
    pub(crate) fn is_fused(&self, group: &Group) -> bool {
        group.can_fuse() && self.fuse == FuseAt::Tile && !self.sums_in_lanes()
    }

    /// Whether terms are summed inside a spatial tile, so that none of their loops encloses it.
    pub(crate) fn sums_inside(&self, group: &Group) -> bool {
        self.sums_in_lanes() || self.is_fused(group)
    }

    /// Resets decisions that other decisions override: they have no effect on the schedule, so they
    /// have none on the model.
    pub(crate) fn settle(mut self, group: &Group) -> Self {
        if self.sums_in_lanes() {
            self.reduce = group.reduce.iter().map(|split| vec![split.axis.extent]).collect();
        }
        self
    }

    /// The extent of the register tile along a spatial loop.
    pub(crate) fn register(&self, axis: usize) -> i64 {
        match self.spatial.get(axis).map(Vec::as_slice) {
            Some([_, .., last]) => *last,
            _ => 1,
        }
    }

    /// The lanes of a vector.
    pub(crate) fn lanes(&self) -> i64 {
        match self.vector {
            Vector::Scalar => 1,
            Vector::Spatial { lanes, .. } | Vector::Reduce { lanes, .. } => lanes,
        }
    }

    /// The accumulators of a register tile, in vectors.
    pub(crate) fn accumulators(&self) -> i64 {
        let all = (0..self.spatial.len()).map(|axis| self.register(axis));
        let elements = all.fold(1i64, i64::saturating_mul);
        match self.vector {
            Vector::Spatial { lanes, .. } => elements / lanes.max(1),
            _ => elements,
        }
    }

    /// The vectors along the vectorized loop.
    pub(crate) fn vectors(&self) -> i64 {
        match self.vector {
            Vector::Spatial { axis, lanes } => self.register(axis) / lanes.max(1),
            _ => 1,
        }
    }

    /// The extent of a spatial loop without its outermost part, rounded up to whole tiles.
    pub(crate) fn tile(&self, axis: usize) -> i64 {
        self.spatial.get(axis).map_or(1, |parts| parts[1..].iter().product())
    }

    /// The original iterations per iteration of the outermost part, including lanes of an unsplit
    /// loop.
    pub(crate) fn cover(&self, axis: usize) -> i64 {
        match self.vector {
            Vector::Spatial { axis: vector, lanes }
                if vector == axis && self.spatial[axis].len() == 1 =>
            {
                lanes
            }
            _ => self.tile(axis).max(1),
        }
    }

    /// Whether a spatial loop is vectorized.
    pub(crate) fn is_vector(&self, axis: usize) -> bool {
        matches!(self.vector, Vector::Spatial { axis: vector, .. } if vector == axis)
    }

    /// The tail strategy of a spatial loop.
    pub(crate) fn tail_of(&self, axis: usize) -> Tail {
        if self.is_vector(axis) { self.vector_tail } else { self.tail }
    }
}
