//! Blocks of rows: fused products, row chains and stencils.
//!
//! Attention is a product, a softmax and another product. Computed one after another, all scores go
//! through memory several times. In blocks of rows they stay in the L2 cache, and each product
//! still has enough rows for its register tiles:
//!
//! ```text
//! for l, s { scores(l,s) += ..; }              for l.block {
//! for l { softmax of a row; }             ->     for l, s { scores(l,s) += ..; }    // tiles
//! for l, e { O(l,e) += ..; }                     for l { softmax of a row; }
//!                                                for l, e { O(l,e) += ..; }         // tiles
//! ```
//!
//! Stencil pipelines are also computed in blocks of rows, so that intermediates stay in the cache.
//! Where a stage reads neighbouring rows, adjacent blocks recompute them; block sizes keep this
//! overhead small.
//!
//! Reductions over the rows of a block, as in gradients, share its loop ([`row_reduction`]).
//!
//! A softmax rewritten to need one block of terms at a time uses blocks of columns ([`columns`]).
//!
//! No operator is known by name: blocks follow from data dependences.

mod columns;
mod find;
mod row_reduction;
mod steps;
mod tiles;

use std::fmt;

use columns::Columns;
use row_reduction::RowReduction;

use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::access::Accesses;

use crate::cpu::rows::Chain;
use crate::stages::rows::is_product;

pub(crate) use columns::find as find_columns;
pub(crate) use find::find;
pub(crate) use steps::{RowTilings, compute};

/// The parameter for the number of rows of a block, and its rule.
pub(crate) const BLOCK: &str = "block";

/// The candidate block sizes in rows.
pub(crate) const SIZES: [i64; 4] = [16, 32, 64, 128];

/// The largest block size at the start of a search.
pub(crate) const START: i64 = 64;

/// The same for blocks without a product.
pub(crate) const STENCIL_START: i64 = 32;

/// A unit of a block: a row chain, or a stage with the reduction of its epilogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The chain with this index.
    Chain(usize),
    /// A stage and the reduction that it reads in place.
    Group {
        /// The stage whose loops are outermost.
        root: String,
        /// The reduction that it reads in place.
        reduction: Option<String>,
    },
}

impl Unit {
    /// The stage whose loops are outermost.
    pub(crate) fn root<'a>(&'a self, chains: &'a [Chain]) -> &'a String {
        match self {
            Self::Chain(place) => &chains[*place].root,
            Self::Group { root, .. } => root,
        }
    }

    /// All its stages.
    pub(crate) fn stages<'a>(&'a self, chains: &'a [Chain]) -> Vec<&'a String> {
        match self {
            Self::Chain(place) => chains[*place].stages.iter().map(|stage| &stage.name).collect(),
            Self::Group { root, reduction } => reduction.iter().chain([root]).collect(),
        }
    }
}

/// How the row loop of a block's root is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The rows of a block.
    pub(crate) rows: i64,
    /// The rows of a register tile of a stencil; 1 without row tiling.
    pub(crate) tile: i64,
}

impl Shape {
    /// A block computed row by row.
    pub(crate) fn by_rows(rows: i64) -> Self {
        Self { rows, tile: 1 }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tile {
            1 => write!(f, "{}", self.rows),
            tile => write!(f, "{} in tiles of {tile}", self.rows),
        }
    }
}

/// Stages that may be computed together in blocks of rows.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The last stage, whose loops enclose all others.
    pub(crate) root: String,
    /// The loop of the root that is split into blocks.
    pub(crate) row: String,
    /// The units in program order; the root's is the last.
    pub(crate) units: Vec<Unit>,
    /// The reductions over its rows.
    pub(crate) row_reductions: Vec<RowReduction>,
    /// The column blocks, if its softmax was rewritten; they replace the units.
    pub(crate) columns: Option<Columns>,
    /// All stages.
    pub(crate) stages: Vec<String>,
    /// The shapes that fit the cache; a search starts with the first.
    pub(crate) shapes: Vec<Shape>,
    /// The index of its parameter in the sketch.
    pub(crate) parameter: usize,
}

impl Block {
    /// Whether a stage is part of this block.
    pub(crate) fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|own| own == stage)
    }

    /// The shape for a rank; `None` without blocking.
    pub(crate) fn shape(&self, rank: u32) -> Option<Shape> {
        self.shapes.get(rank as usize).copied()
    }

    /// The values of the parameter.
    pub(crate) fn names(&self) -> Vec<String> {
        self.shapes.iter().map(ToString::to_string).chain(["apart".to_owned()]).collect()
    }
}

/// Whether a unit is a matrix product or a convolution.
fn is_product_unit(draft: &ScheduleState, unit: &Unit) -> bool {
    let Unit::Group { root, reduction } = unit else { return false };
    let stage = reduction.as_ref().unwrap_or(root);
    Accesses::of(&draft.nest, stage).is_some_and(|accesses| is_product(&accesses))
}
