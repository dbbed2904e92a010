//! Row-wise fusion: chains of stages over the same rows.
//!
//! A softmax, a norm or a loss is a chain of reductions and element-wise stages over rows. Without
//! fusion, each of them reads its rows from memory again; fused, a row stays in the cache:
//!
//! ```text
//! for n { for d { top(n) max= x(n,d); } }          for n {
//! for n { for d { e(n,d) = ..; } }           ->      for d { top max= x(n,d); }
//! for n { for d { y(n,d) = ..; } }                   for d { e(d) = ..; }
//!                                                    for d { y(n,d) = ..; }
//! ```
//!
//! No operator is known by name: [`find`] analyzes reads and fuses stages without recomputation.

mod compute;
mod find;
mod knobs;

use std::ops::Range;

use crate::stages::sibling_fusion::Sibling;

pub(crate) use compute::compute;
pub(crate) use find::find;
pub(crate) use knobs::{ROWS, RowKnob, parameters};

/// Stages that may be computed together, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The last stage, whose row loops enclose all others.
    pub(crate) root: String,
    /// The loop of the root that the others are computed in.
    pub(crate) row: String,
    /// Its iterations times those of the enclosing loops.
    pub(crate) rows: i64,
    /// The work of its stages.
    pub(crate) work: i128,
    /// The stages, in the order of the program.
    pub(crate) stages: Vec<RowStage>,
    /// The stages that share the row loops with the root as siblings.
    pub(crate) siblings: Vec<Sibling>,
    /// The indices of its parameters in the sketch, and the decision of each.
    pub(crate) parameters: Range<usize>,
    pub(crate) knobs: Vec<RowKnob>,
}

/// A stage of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowStage {
    pub(crate) name: String,
    /// The maximum vectors of a row per step; one if it is computed in the vectors of the root.
    pub(crate) vectors: i64,
    /// Whether only the root reads it, in place, and it is computed in the root's vectors: its few
    /// terms are accumulated in registers.
    pub(crate) in_tile: bool,
}

/// The decisions of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowTiling {
    /// Whether its stages are fused row by row.
    pub(crate) is_fused: bool,
    /// The vectors per step of each stage. A reduction has as many partial results.
    pub(crate) vectors: Vec<i64>,
    /// Whether the rows are parallel.
    pub(crate) is_parallel: bool,
}

impl RowTiling {
    /// Without fusion.
    pub(crate) fn apart() -> Self {
        Self { is_fused: false, vectors: Vec::new(), is_parallel: false }
    }
}

impl Chain {
    /// The siblings that are sums over rows.
    pub(crate) fn adding_up(&self) -> impl Iterator<Item = &Sibling> {
        self.siblings.iter().filter(|stage| stage.adds_up)
    }

    /// Whether a stage is part of the chain.
    pub(crate) fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|own| own.name == stage)
    }
}
