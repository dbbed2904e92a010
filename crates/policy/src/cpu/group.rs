//! [`Group`]: stages that are tiled together, and what is known of them.

use std::ops::Range;

use crate::stages::operand::{Mover, Operand};
use crate::stages::split::Split;

/// The most loops whose order is a parameter; the others stay where they are.
pub(crate) const MOST_ORDERED: usize = 5;

/// Stages that are tiled together: a stage, and perhaps a reduction whose results it reads in place
/// (a bias, a rectifier), which may then be computed inside its tiles.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The stage whose loops are outermost.
    pub(crate) root: String,
    /// The reduction that the root reads in place.
    pub(crate) epilogue_of: Option<String>,
    /// The loops over results of the stage that is tiled; those of the root have the same places.
    pub(crate) spatial: Vec<Split>,
    /// The loop over results along which they are next to each other in memory.
    pub(crate) contiguous: Option<usize>,
    /// The names of the root's loops over results.
    pub(crate) root_loops: Vec<String>,
    /// The loops over terms.
    pub(crate) reduce: Vec<Split>,
    /// What may be vectorized: first what the default would take.
    pub(crate) vectors: Vec<Vector>,
    /// Tensors that may be packed or laid out.
    pub(crate) packs: Vec<Packable>,
    /// Bytes of an element of the result.
    pub(crate) element_bytes: i64,
    /// How many different tensors the stage reads.
    pub(crate) operands: i64,
    /// What it reads, in the order of the text.
    pub(crate) reads: Vec<Operand>,
    /// What it writes.
    pub(crate) write: Operand,
    /// The parameters that decide about it, by place among those of the sketch.
    pub(crate) parameters: Range<usize>,
}

/// Which loop becomes the lanes of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vector {
    /// None.
    Scalar,
    /// A loop over results, by place.
    Spatial { axis: usize, lanes: i64 },
    /// A loop over terms, by place: partial results in the lanes are combined at the end.
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
    /// For every loop over results the dimension that moves with it.
    pub(crate) dimension_of: Vec<Option<usize>>,
    /// The dimensions that move with some loop over results, and all loops that move each dimension.
    pub(crate) moved_by: Vec<Vec<Mover>>,
}

impl Group {
    /// The stage that is tiled.
    pub(crate) fn stage(&self) -> &str {
        self.epilogue_of.as_deref().unwrap_or(&self.root)
    }

    /// Whether a reduction may be computed inside the tiles of the stage that reads it in place.
    pub(crate) fn can_fuse(&self) -> bool {
        self.epilogue_of.is_some() && !self.spatial.is_empty()
    }

    /// Whether a stage is its root or its reduction.
    pub(crate) fn has(&self, stage: &str) -> bool {
        self.root == stage || self.epilogue_of.as_deref() == Some(stage)
    }

    /// Whether neighbours along a loop over results combine terms that overlap: a window that moves with the loop. Of a
    /// single tensor, so that registers hold nothing but accumulators and what these share.
    pub(crate) fn is_window(&self, row: usize, term: usize) -> bool {
        let moves = |movers: &Vec<Mover>| {
            movers.contains(&Mover::Spatial(row, 1)) && movers.contains(&Mover::Reduce(term, 1))
        };
        self.operands == 1 && self.reads.iter().any(|read| read.moved_by.iter().any(moves))
    }

    /// Whether it has loops over terms.
    pub(crate) fn is_reduction(&self) -> bool {
        !self.reduce.is_empty()
    }
}
