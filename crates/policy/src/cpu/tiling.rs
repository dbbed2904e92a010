//! [`Tiling`]: what is decided about a group, as numbers and names.

use tensorwright_schedule::primitives::Tail;

use crate::cpu::group::{Group, Vector};
use crate::stages::split::Split;

/// Where a tensor is copied into panels that are in the order of the reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackAt {
    /// Nowhere: it is read where it is.
    Nowhere,
    /// It is laid out once, ahead of all calls.
    Laid,
    /// In the outermost loop.
    Outer,
    /// In the last of the outermost loops over results.
    Middle,
    /// In the innermost loop around the innermost terms.
    Inner,
}

/// How results go to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreBy {
    /// From the registers.
    Direct,
    /// Through a tile in the first-level cache that is turned there.
    Transposed,
}

/// Where a reduction is computed that a stage reads in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FuseAt {
    /// Inside the tiles of that stage.
    Tile,
    /// On its own.
    Apart,
}

/// What is decided about a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tiling {
    /// The parts of the loops over results, outermost first.
    pub(crate) spatial: Vec<Vec<i64>>,
    /// The parts of the loops over terms.
    pub(crate) reduce: Vec<Vec<i64>>,
    /// Where each tensor is packed that may be.
    pub(crate) packs: Vec<PackAt>,
    /// The order of the outermost loops over results.
    pub(crate) outer_order: Vec<usize>,
    /// The order of the second last loops over results and the outer loops over terms: those that are
    /// split, results first.
    pub(crate) middle_order: Vec<usize>,
    /// The order of the innermost loops over terms.
    pub(crate) reduce_order: Vec<usize>,
    pub(crate) vector: Vector,
    /// Iterations of the innermost loop over terms that are written out.
    pub(crate) unroll: i64,
    /// What becomes of the last tile along loops that are not vectorized.
    pub(crate) tail: Tail,
    /// What becomes of the last tile along the vectorized loop.
    pub(crate) vector_tail: Tail,
    pub(crate) store: StoreBy,
    pub(crate) fuse: FuseAt,
    /// How many of the outermost loops workers share.
    pub(crate) parallel: i64,
}

impl Tiling {
    /// Nothing but vectors: loops are whole and in their order. What a knob has no parameter for stays so.
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

    /// Whether vectors are along terms: partial results in the lanes are combined at the end.
    pub(crate) fn sums_in_lanes(&self) -> bool {
        matches!(self.vector, Vector::Reduce { .. })
    }

    /// Whether a reduction is computed inside the tiles of the stage that reads it in place.
    pub(crate) fn is_fused(&self, group: &Group) -> bool {
        group.can_fuse() && self.fuse == FuseAt::Tile && !self.sums_in_lanes()
    }

    /// Whether the terms are summed inside a tile of results, so that none of their loops is around it.
    pub(crate) fn sums_inside(&self, group: &Group) -> bool {
        self.sums_in_lanes() || self.is_fused(group)
    }

    /// Takes back what other decisions leave no room for: such a decision makes no difference to the schedule,
    /// so it makes none to the model.
    pub(crate) fn settle(mut self, group: &Group) -> Self {
        if self.sums_in_lanes() {
            self.reduce = group.reduce.iter().map(|split| vec![split.axis.extent]).collect();
        }
        self
    }

    /// The extent of the register tile along a loop over results.
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

    /// The extent, rounded up to whole tiles, of a loop over results without its outermost part.
    pub(crate) fn tile(&self, axis: usize) -> i64 {
        self.spatial.get(axis).map_or(1, |parts| parts[1..].iter().product())
    }

    /// The iterations that one of the outermost loop stands for, lanes of a loop that is not split
    /// otherwise included.
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

    /// Whether the lanes are along a loop over results.
    pub(crate) fn is_vector(&self, axis: usize) -> bool {
        matches!(self.vector, Vector::Spatial { axis: vector, .. } if vector == axis)
    }

    /// What becomes of the last tile along a loop over results.
    pub(crate) fn tail_of(&self, axis: usize) -> Tail {
        if self.is_vector(axis) { self.vector_tail } else { self.tail }
    }
}
