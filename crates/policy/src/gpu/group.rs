//! [`Group`]: stages of one launch, with their analysis.

use std::ops::Range;

use crate::stages::operand::Operand;
use crate::stages::split::Split;

/// The stages of one launch: a stage, and optionally a reduction whose results it reads in place
/// (as an epilogue such as bias or ReLU), which is computed in its blocks.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The outermost stage.
    pub(crate) root: String,
    /// The reduction that the root reads in place.
    pub(crate) epilogue_of: Option<String>,
    /// The spatial loops of the tiled stage; those of the root have the same order.
    pub(crate) spatial: Vec<Split>,
    /// The names of the root's spatial loops.
    pub(crate) root_loops: Vec<String>,
    /// The reduction loops.
    pub(crate) reduce: Vec<Split>,
    /// The spatial loop along which adjacent threads write adjacent elements.
    pub(crate) contiguous: usize,
    /// The index of the reduction loop for cooperative reduction: the one with the most contiguous
    /// reads.
    pub(crate) shared_sum: Option<usize>,
    /// Its reads, in textual order.
    pub(crate) reads: Vec<Operand>,
    /// Its write.
    pub(crate) write: Operand,
    /// The tensors that may be staged in shared memory.
    pub(crate) staged: Vec<String>,
    /// The operations per term, or per element.
    pub(crate) operations: f64,
    /// The indices of its parameters in the sketch.
    pub(crate) parameters: Range<usize>,
}

impl Group {
    /// Its stages: the reduction first.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &String> {
        self.epilogue_of.iter().chain([&self.root])
    }

    /// The stage that is tiled.
    pub(crate) fn stage(&self) -> &str {
        self.epilogue_of.as_deref().unwrap_or(&self.root)
    }

    /// Whether it has reduction loops.
    pub(crate) fn is_reduction(&self) -> bool {
        !self.reduce.is_empty()
    }

    /// The number of terms per result.
    pub(crate) fn terms(&self) -> f64 {
        self.reduce.iter().map(|split| split.extent() as f64).product()
    }

    /// The reads of a stageable tensor.
    pub(crate) fn reads_of(&self, tensor: &str) -> impl Iterator<Item = &Operand> {
        self.reads.iter().filter(move |read| read.tensor == tensor)
    }
}
