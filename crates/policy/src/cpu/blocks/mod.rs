//! Blocks: products and the rows between them are computed together, a block of rows at a time.
//!
//! Attention is a product, a softmax and another product. Computed one after another, all scores go to memory
//! and back several times; in blocks of rows they stay in the second-level cache, and each product still has
//! rows enough for its register tiles:
//!
//! ```text
//! for l, s { scores(l,s) += ..; }              for l.block {
//! for l { softmax of a row; }             ->     for l, s { scores(l,s) += ..; }    // tiles
//! for l, e { O(l,e) += ..; }                     for l { softmax of a row; }
//!                                                for l, e { O(l,e) += ..; }         // tiles
//! ```
//!
//! Stencils are computed in blocks of rows as well: the stages of a pipeline over a picture go through the cache
//! together instead of through memory one after another. Where a stage reads rows around its own, neighbouring blocks
//! compute these twice; blocks are as large as that takes to be little.
//!
//! Products that add up over the rows of a block share its loop ([`reduction`]): those of gradients.
//!
//! A softmax that was rewritten to need a block of its terms at a time ([`columns`]) is computed in blocks of columns as well.
//!
//! As with rows, no operator is known by name.

mod columns;
mod cut;
mod find;
mod product;
mod row_reduction;
mod steps;
mod tile;

use std::fmt;

use columns::Columns;
use row_reduction::RowReduction;

use crate::cpu::rows::Chain;

pub(crate) use columns::find as find_columns;
pub(crate) use find::find;
pub(crate) use steps::{RowTilings, compute};

/// The parameter that says how many rows a block has, and the rule about it.
pub(crate) const BLOCK: &str = "block";

/// The rows of a block: none, or so many.
pub(crate) const SIZES: [i64; 4] = [16, 32, 64, 128];

/// The rows that a search starts with, or fewer.
pub(crate) const START: i64 = 64;

/// The same without a product.
pub(crate) const STENCIL_START: i64 = 32;

/// What is computed together in a block: a chain of rows, or a stage with the reduction that it reads in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The chain with this place.
    Chain(usize),
    /// A stage and its reduction.
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

/// How the rows of a block's last stage are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The rows of a block.
    pub(crate) rows: i64,
    /// The rows of a register tile of a stencil; one if it is computed row by row.
    pub(crate) tile: i64,
}

impl Shape {
    /// Blocks whose rows are computed one after another.
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
    /// The stage whose loops are around all: the last one.
    pub(crate) root: String,
    /// The loop of the root that is taken in blocks.
    pub(crate) row: String,
    /// What is computed, in the order of the program; the root's is the last.
    pub(crate) units: Vec<Unit>,
    /// The products that add up over its rows.
    pub(crate) row_reductions: Vec<RowReduction>,
    /// The blocks of columns that it is computed in, if its softmax was rewritten; these are all units then.
    pub(crate) columns: Option<Columns>,
    /// All stages.
    pub(crate) stages: Vec<String>,
    /// The shapes of a block that a cache holds; a search starts with the first.
    pub(crate) shapes: Vec<Shape>,
    /// The parameter that decides about it, by place among those of the sketch.
    pub(crate) parameter: usize,
}

impl Block {
    /// Whether a stage is one of them.
    pub(crate) fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|own| own == stage)
    }

    /// The shape of a block that a rank says; `None` if everything is computed apart.
    pub(crate) fn shape(&self, rank: u32) -> Option<Shape> {
        self.shapes.get(rank as usize).copied()
    }

    /// The values of the parameter.
    pub(crate) fn names(&self) -> Vec<String> {
        self.shapes.iter().map(ToString::to_string).chain(["apart".to_owned()]).collect()
    }
}
