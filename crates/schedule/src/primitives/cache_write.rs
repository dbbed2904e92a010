//! `cache_write`: accumulates results in a local buffer and writes them once.
//!
//! ```text
//! C: cache_write at n.0
//! for m.0, n.0 {                           for m.0, n.0 {
//!   for k {                                  float C.tile[6][16];
//!     for m.1 in 0..6 {                      for k {
//!       for n.1 in 0..16 {            ->       for m.1, n.1 { C.tile(m.1, n.1) += ...; }
//!         C(6*m.0 + m.1,                     }
//!           16*n.0 + n.1) += ...;            for m.1, n.1 { C(6*m.0 + m.1, ...) = C.tile(m.1, n.1); }
//! ```
//!
//! The loops below become those of the stage `C.tile`; the stage `C` keeps the enclosing loops and
//! gets new ones that write the tile. If reduction loops enclose it, the tile is added to the
//! result. If all loops over the tile are unrolled or vectorized, it lives in registers.

use std::fmt;

use super::localize::localize;
use super::{Reach, Rule};
use crate::nest::LoopNest;
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Accumulates in a local tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheWrite {
    /// The loop in which the tile lives.
    pub at: String,
}

impl fmt::Display for CacheWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache_write at {}", self.at)
    }
}

impl Rule for CacheWrite {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        words.symbol("at")?;
        Ok(CacheWrite { at: words.name("the name of a loop")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        localize(nest, stage, &self.at, None, "tile")
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { at: names.own_loop(&self.at)? })
    }
}
