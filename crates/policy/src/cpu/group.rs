//! [`Group`]: stages tiled together, with their analysis.

use std::ops::Range;

use crate::stages::operand::{Mover, Operand};
use crate::stages::split::Split;

/// The maximum number of loops whose order is a parameter; others keep their position.
pub(crate) const MOST_ORDERED: usize = 5;

/// Stages that are tiled together: a stage, and optionally a reduction whose results it reads in
/// place (as an epilogue such as bias or ReLU), which may be computed inside its tiles.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The outermost stage.
    pub(crate) root: String,
    /// The reduction that the root reads in place.
    pub(crate) epilogue_of: Option<String>,
    /// The spatial loops of the tiled stage; those of the root have the same order.
    pub(crate) spatial: Vec<Split>,
    /// The spatial loop along which results are contiguous in memory.
    pub(crate) contiguous: Option<usize>,
    /// The names of the root's spatial loops.
    pub(crate) root_loops: Vec<String>,
    /// The reduction loops.
    pub(crate) reduce: Vec<Split>,
    /// The candidate vector loops: the default first.
    pub(crate) vectors: Vec<Vector>,
    /// Tensors that may be packed or laid out.
    pub(crate) packs: Vec<Packable>,
    /// Bytes of an element of the result.
    pub(crate) element_bytes: i64,
    /// The number of distinct tensors that the stage reads.
    pub(crate) operands: i64,
    /// Its reads, in textual order.
    pub(crate) reads: Vec<Operand>,
    /// Its write.
    pub(crate) write: Operand,
    /// The indices of its parameters in the sketch.
    pub(crate) parameters: Range<usize>,
}

/// Which loop becomes the lanes of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vector {
    /// None.
    Scalar,
    /// A spatial loop, by index.
    Spatial { axis: usize, lanes: i64 },
    /// A reduction loop, by index: partial results in the lanes are combined at the end.
    Reduce { axis: usize, lanes: i64 },
}

/// A tensor that may be packed.
#[derive(Debug, Clone)]
pub(crate) struct Packable {
    pub(crate) tensor: String,
    pub(crate) rank: usize,
    pub(crate) shape: Vec<i64>,
    pub(crate) element_bytes: i64,
    /// Whether it may be laid out once, ahead of all calls.
    pub(crate) is_constant: bool,
    /// For every spatial loop, the dimension that moves with it.
    pub(crate) dimension_of: Vec<Option<usize>>,
    /// The dimensions that move with some spatial loop, and all loops that move each dimension.
    pub(crate) moved_by: Vec<Vec<Mover>>,
}

impl Group {
    /// The stage that is tiled.
    pub(crate) fn stage(&self) -> &str {
        self.epilogue_of.as_deref().unwrap_or(&self.root)
    }

    /// Whether a reduction may be computed inside the tiles of its epilogue.
    pub(crate) fn can_fuse(&self) -> bool {
        self.epilogue_of.is_some() && !self.spatial.is_empty()
    }

    /// Whether a stage is its root or its reduction.
    pub(crate) fn has(&self, stage: &str) -> bool {
        self.root == stage || self.epilogue_of.as_deref() == Some(stage)
    }

    /// Whether neighbours along a spatial loop read overlapping terms: a sliding window. Only of a
    /// single tensor, so that registers hold nothing but accumulators and shared reads.
    pub(crate) fn is_window(&self, row: usize, term: usize) -> bool {
        let moves = |movers: &Vec<Mover>| {
            movers.contains(&Mover::Spatial(row, 1)) && movers.contains(&Mover::Reduce(term, 1))
        };
        self.operands == 1 && self.reads.iter().any(|read| read.moved_by.iter().any(moves))
    }

    /// Whether it has reduction loops.
    pub(crate) fn is_reduction(&self) -> bool {
        !self.reduce.is_empty()
    }
}
