//! Definedness: no nest reads what nothing has written.
//!
//! [`check`] runs a nest on memory that knows of each element whether it was written, instead of what
//! it holds. Values from data are unknown, loop variables are not, so every access happens where it
//! would happen in a kernel. What a store makes of an undefined element is undefined itself; that is
//! no mistake as long as it stays in padding, so the flaw is an undefined element in a result, or at a
//! place where it decides what is accessed.
//!
//! ```text
//! for k { float P[1]; P(0) = A(i); C(i) += B(i, k); }  with C(i) from P(0)
//! ->  P(0) is read before loop k: `C` reads `P(0)`, which nothing has written
//! ```
//!
//! The check is exact up to data, takes as long as the loops are, and gives up beyond a limit: it is
//! for tests and fuzzing. What primitives ask before they move something is
//! [`reduction_init`](crate::primitives), which is symbolic and costs nothing.
//!
//! Barriers are looked for where they may not stand, without running anything.
//!
//! Nests of every form are taken: before lowering, reductions start where lowering starts them
//! (by that very pass), and the bounds of stores are kept.

mod barriers;
mod memory;
mod run;
mod turn;

use std::fmt;

use crate::nest::LoopNest;
use run::Run;

/// What a nest does that no nest may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// An element is used that nothing has written.
    Undefined {
        /// The stage whose store reads it; `None` for a result that is never written.
        reader: Option<String>,
        /// The buffer.
        buffer: String,
        /// The element.
        element: Vec<i64>,
    },
    /// An access outside of a buffer.
    OutOfBounds {
        /// The stage whose store it is.
        stage: String,
        /// The buffer.
        buffer: String,
        /// The subscripts.
        element: Vec<i128>,
    },
    /// Two workers, blocks or threads access one element at the same time, and one of them writes.
    Race {
        /// The stage whose store does so last.
        stage: String,
        /// The buffer.
        buffer: String,
        /// The element.
        element: Vec<i64>,
    },
    /// A barrier to which not all threads of a block may come.
    Divergent {
        /// What is around it: `a condition`, or a loop over threads.
        around: String,
    },
}

/// What a check that found no flaw is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The nest has none.
    Sound,
    /// The nest takes longer than the limit; what was run has none.
    TooLong,
}

/// Runs a nest, at most about `limit` stores and elements of it.
///
/// # Errors
/// The first flaw.
pub fn check(nest: &LoopNest, limit: u64) -> Result<Verdict, Flaw> {
    if let Some(flaw) = barriers::divergent(nest) {
        return Err(flaw);
    }
    let mut started = nest.clone();
    crate::lower::start_reductions(&mut started);
    let Some(mut first) = Run::new(&started, limit) else { return Ok(Verdict::TooLong) };
    let verdict = first.all().map_err(|flaw| *flaw)?;
    // What data decides may be any element that is written at all, which is known only now.
    match first.again() {
        Some(mut second) if verdict == Verdict::Sound => second.all().map_err(|flaw| *flaw),
        _ => Ok(verdict),
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list(element: &[impl fmt::Display]) -> String {
            element.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        match self {
            Flaw::Undefined { reader: Some(reader), buffer, element } => write!(
                f,
                "`{reader}` reads `{buffer}({})`, which nothing has written",
                list(element)
            ),
            Flaw::Undefined { reader: None, buffer, element } => {
                write!(f, "nothing writes the result `{buffer}({})`", list(element))
            }
            Flaw::OutOfBounds { stage, buffer, element } => {
                write!(f, "`{stage}` accesses `{buffer}({})`, out of bounds", list(element))
            }
            Flaw::Race { stage, buffer, element } => write!(
                f,
                "`{stage}` accesses `{buffer}({})`, as does another iteration that runs at the same time",
                list(element)
            ),
            Flaw::Divergent { around } => {
                write!(f, "a barrier stands within {around}, and not all threads may come to it")
            }
        }
    }
}

impl std::error::Error for Flaw {}

#[cfg(test)]
mod tests;
