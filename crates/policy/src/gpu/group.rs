//! [`Group`]: stages that one launch computes, and what is known of them.

use std::ops::Range;

use crate::stages::operand::Operand;
use crate::stages::split::Split;

/// Stages that one launch computes: a stage, and perhaps a reduction whose results it reads in place (a bias, a
/// rectifier), which is then computed in its blocks.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The stage whose loops are outermost.
    pub(crate) root: String,
    /// The reduction that the root reads in place.
    pub(crate) epilogue_of: Option<String>,
    /// The loops over results of the stage that is tiled; those of the root have the same places.
    pub(crate) spatial: Vec<Split>,
    /// The names of the root's loops over results.
    pub(crate) root_loops: Vec<String>,
    /// The loops over terms.
    pub(crate) reduce: Vec<Split>,
    /// The loop over results along which threads next to each other write elements next to each other.
    pub(crate) contiguous: usize,
    /// The loop over terms that threads may share, by place: the one along which most is read in order.
    pub(crate) shared_sum: Option<usize>,
    /// What the stage reads, in the order of the text.
    pub(crate) reads: Vec<Operand>,
    /// What it writes.
    pub(crate) write: Operand,
    /// The tensors that may be staged in shared memory.
    pub(crate) staged: Vec<String>,
    /// The operations of a term, or of an element.
    pub(crate) operations: f64,
    /// The parameters that decide about it, by place among those of the sketch.
    pub(crate) parameters: Range<usize>,
}

impl Group {
    /// The stage that is tiled.
    pub(crate) fn stage(&self) -> &str {
        self.epilogue_of.as_deref().unwrap_or(&self.root)
    }

    /// Whether it has loops over terms.
    pub(crate) fn is_reduction(&self) -> bool {
        !self.reduce.is_empty()
    }

    /// The number of terms of a result.
    pub(crate) fn terms(&self) -> f64 {
        self.reduce.iter().map(|split| split.extent() as f64).product()
    }

    /// The reads of a tensor that may be staged.
    pub(crate) fn reads_of(&self, tensor: &str) -> impl Iterator<Item = &Operand> {
        self.reads.iter().filter(move |read| read.tensor == tensor)
    }
}
