//! `rfactor`: turns a reduction loop into a dimension of partial results.
//!
//! ```text
//! y: rfactor k.1 at i
//! for i {                                  for i {
//!   for k.0 {                                float y.rf[16];
//!     for k.1 in 0..16 {             ->      for k.0 { for k.1 { y.rf(k.1) += ... at 16*k.0 + k.1; } }
//!       y(i) += ... at 16*k.0 + k.1;         for k.1 { y(i) += y.rf(k.1); }
//! ```
//!
//! In the stage `y.rf` the loop is spatial, so it can be vectorized or parallel.

use std::fmt;

use super::localize::localize;
use super::{Reach, Rule};
use crate::nest::LoopNest;
use crate::primitives::renaming::Renaming;
use crate::refusal::Refusal;
use crate::words::Words;

/// Factors a reduction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rfactor {
    /// The reduction loop.
    pub target: String,
    /// The loop that contains the partial results.
    pub at: String,
}

impl fmt::Display for Rfactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rfactor {} at {}", self.target, self.at)
    }
}

impl Rule for Rfactor {
    fn reach(&self) -> Reach {
        Reach::Stage
    }

    fn parse(words: &mut Words<'_>) -> Result<Self, Refusal> {
        let target = words.name("the name of a loop of the reduction")?;
        words.symbol("at")?;
        Ok(Rfactor { target, at: words.name("the name of a loop")? })
    }

    fn apply(&self, stage: &str, nest: &mut LoopNest) -> Result<(), Refusal> {
        localize(nest, stage, &self.at, Some(&self.target), "rf")
    }

    fn renamed(&self, names: &Renaming<'_>) -> Result<Self, Refusal> {
        Ok(Self { target: names.own_loop(&self.target)?, at: names.own_loop(&self.at)? })
    }
}
