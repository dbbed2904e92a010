//! [`Dag`]: a program as a search sees it.
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

/// A program as a graph of stages; built once, in time linear in the program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dag {
    /// The stages, in an order in which they can be computed: the numbers of stages are places in it.
    pub stages: Vec<Stage>,
    /// What the caller supplies.
    pub inputs: Vec<Input>,
    /// For every stage, the stages that read it.
    pub consumers: Vec<Vec<usize>>,
}

/// A tensor that the caller supplies.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its bytes.
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
    /// The number of the tensor that it makes, among those of the program.
    pub tensor: u32,
    /// The extents of its loops over results.
    pub spatial: Vec<i64>,
    /// The extents of its loops over terms.
    pub reduce: Vec<i64>,
    /// The bytes of an element.
    pub element_bytes: i64,
    /// How many terms all elements have together, if their positions are computed: a scatter.
    pub scattered: Option<f64>,
    /// Loops over a few results that share an operand, such as the colours of a filter: all are computed together, from registers.
    pub together: Vec<usize>,
    /// About as many instructions as one element takes per term.
    pub operations: f64,
    /// The parts of its expression: what inlining it adds to every reader.
    pub parts: usize,
    /// What it reads, one per tensor.
    pub edges: Vec<Edge>,
    /// Whether the caller receives it.
    pub is_output: bool,
    /// Whether its loops are left to other rules, and why: it is a recurrence, a scatter, a product.
    pub fixed: Option<&'static str>,
    /// Whether it may be computed anywhere but on its own.
    pub is_movable: bool,
    /// Whether it may be computed wherever it is read.
    pub is_inlinable: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A stage.
    Stage(usize),
    /// What the caller supplies.
    Input(usize),
}

/// What a stage reads of one tensor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Edge {
    /// The tensor.
    pub source: Source,
    /// Which region of it a region of the stage needs.
    pub footprint: Footprint,
    /// How many different elements are read for an element and a term.
    pub reads: usize,
    /// Whether one element is read, in the place of the one that is made.
    pub is_in_place: bool,
}

impl Edge {
    /// Whether elements of a row of the stage, which has so many dimensions, read elements that are next to each other, or
    /// the same one.
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

    /// The number of terms of an element.
    #[must_use]
    pub fn terms(&self) -> f64 {
        self.reduce.iter().map(|extent| *extent as f64).product()
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.points() * self.element_bytes as f64
    }
}
