//! [`Dag`]: the graph of stages that a search works on.
//!
//! ```text
//! bx   64x63 of 4 bytes, 1 operation
//!   <- in     [d0, d1+1], 2 reads
//! out  62x63 of 4 bytes, 2 operations, result
//!   <- bx     [d0+2, d1], 3 reads
//! ```

mod build;
mod footprint;
mod print;
#[cfg(test)]
mod tests;

pub use footprint::{Footprint, Reach};
pub(crate) use print::extents;

/// A program as a graph of stages, built in time linear in the program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dag {
    /// The stages in topological order; stage numbers are indices into this list.
    pub stages: Vec<Stage>,
    /// The input tensors.
    pub inputs: Vec<Input>,
    /// For every stage, the stages that read it.
    pub consumers: Vec<Vec<usize>>,
}

/// An input tensor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: i64,
    /// The bytes of an element.
    pub element_bytes: i64,
}

/// A stage.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stage {
    /// Its name in the source text; versions of a tensor share it.
    pub name: String,
    /// The number of the tensor that it computes, among those of the program.
    pub tensor: u32,
    /// The extents of its spatial loops.
    pub spatial: Vec<i64>,
    /// The extents of its reduction loops.
    pub reduce: Vec<i64>,
    /// The bytes of an element.
    pub element_bytes: i64,
    /// The total number of terms if the positions of elements are computed: a scatter.
    pub scattered: Option<f64>,
    /// Short spatial loops that share an operand, such as the colours of a filter: all their
    /// results are computed together, from registers.
    pub together: Vec<usize>,
    /// The approximate number of instructions per element and term.
    pub operations: f64,
    /// The number of nodes of its expression: what inlining it adds to every reader.
    pub parts: usize,
    /// Its reads, one edge per tensor.
    pub edges: Vec<Edge>,
    /// Whether it is an output of the program.
    pub is_output: bool,
    /// Why rules schedule its loops, if they do: it is a recurrence, a scatter, a product.
    pub fixed: Option<&'static str>,
    /// Whether it may have another compute location than the root level.
    pub is_movable: bool,
    /// Whether it may be inlined.
    pub is_inlinable: bool,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A stage.
    Stage(usize),
    /// An input tensor.
    Input(usize),
}

/// The reads of a stage from one tensor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Edge {
    /// The tensor.
    pub source: Source,
    /// The region of the tensor that a region of the stage needs.
    pub footprint: Footprint,
    /// The number of different elements read per element and term.
    pub reads: usize,
    /// Whether only the element at the position of the result is read.
    pub is_in_place: bool,
}

impl Edge {
    /// Whether consecutive elements of a row of the stage, which has `rank` dimensions, read
    /// consecutive elements or the same one.
    #[must_use]
    pub fn is_along_rows(&self, rank: usize) -> bool {
        let Some(row) = rank.checked_sub(1) else { return true };
        let Some((last, others)) = self.footprint.dimensions.split_last() else { return true };
        matches!(last.step(row), Some(0 | 1))
            && others.iter().all(|reach| reach.step(row) == Some(0))
    }
}

impl Stage {
    /// The number of its elements.
    #[must_use]
    pub fn points(&self) -> f64 {
        self.spatial.iter().map(|extent| *extent as f64).product()
    }

    /// The number of terms per element.
    #[must_use]
    pub fn terms(&self) -> f64 {
        self.reduce.iter().map(|extent| *extent as f64).product()
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.points() * self.element_bytes as f64
    }
}
