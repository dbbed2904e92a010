//! Rows: stages that go over the same rows of tensors are computed together, row by row.
//!
//! A softmax, a norm or a loss is a chain of reductions and element-wise stages over rows. Computed one after
//! another, each of them reads its rows from memory again; computed row by row, a row stays in the cache:
//!
//! ```text
//! for n { for d { top(n) max= x(n,d); } }          for n {
//! for n { for d { e(n,d) = ..; } }           ->      for d { top max= x(n,d); }
//! for n { for d { y(n,d) = ..; } }                   for d { e(d) = ..; }
//!                                                    for d { y(n,d) = ..; }
//! ```
//!
//! No operator is known by name: [`find`] looks at what stages read, and takes those of which nothing is
//! computed twice.

mod find;
mod knobs;
mod phases;
mod results;
mod steps;

use std::ops::Range;

use crate::stages::sibling_fusion::Sibling;

pub(crate) use find::{MOST_TERMS, find};
pub(crate) use knobs::{ROWS, RowKnob, parameters};
pub(crate) use phases::phases;
pub(crate) use steps::{Row, compute, depth, in_registers, lane_axis, place};

/// Stages that may be computed together, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The stage whose loops over rows are around all: the last one.
    pub(crate) root: String,
    /// The loop of the root in which the others are computed.
    pub(crate) row: String,
    /// Its iterations with those of the loops around it.
    pub(crate) rows: i64,
    /// The work of its stages.
    pub(crate) work: i128,
    /// The stages, in the order of the program.
    pub(crate) stages: Vec<RowStage>,
    /// Those of them that share the loops over rows with the root and are not computed for it.
    pub(crate) siblings: Vec<Sibling>,
    /// The parameters that decide about it, by place among those of the sketch, and what each decides.
    pub(crate) parameters: Range<usize>,
    pub(crate) knobs: Vec<RowKnob>,
}

/// A stage of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowStage {
    pub(crate) name: String,
    /// The most vectors of a row that can be computed at a time; one if it is computed in the vectors of the root.
    pub(crate) vectors: i64,
    /// Whether it is computed in the vectors of the root, which alone reads it, in place: its few terms are
    /// added up in registers.
    pub(crate) in_tile: bool,
}

/// What is decided about a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowTiling {
    /// Whether its stages are computed row by row.
    pub(crate) is_fused: bool,
    /// The vectors of each stage that are computed at a time. A reduction has as many partial results.
    pub(crate) vectors: Vec<i64>,
    /// Whether workers share the rows.
    pub(crate) is_parallel: bool,
}

impl RowTiling {
    /// Stages one after another.
    pub(crate) fn apart() -> Self {
        Self { is_fused: false, vectors: Vec::new(), is_parallel: false }
    }
}

impl Chain {
    /// The stages beside the root that add up over rows.
    pub(crate) fn adding_up(&self) -> impl Iterator<Item = &Sibling> {
        self.siblings.iter().filter(|stage| stage.adds_up)
    }

    /// Whether a stage is one of them.
    pub(crate) fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|own| own.name == stage)
    }
}
