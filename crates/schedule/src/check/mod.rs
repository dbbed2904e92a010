//! Sanitizer: finds undefined reads, out-of-bounds accesses and data races.
//!
//! [`check`] interprets a nest on shadow memory, which records whether each element was written
//! instead of its value. Loop variables are concrete and values from data are unknown, so accesses
//! happen at the same positions as in a kernel. A store that reads an undefined element makes its
//! own element undefined. That is legal in padding. It is a flaw in a result, or where the value
//! selects a position to access.
//!
//! ```text
//! for k { float P[1]; P(0) = A(i); C(i) += B(i, k); }  with C(i) from P(0)
//! ->  P(0) is read before loop k: `C` reads `P(0)`, which nothing has written
//! ```
//!
//! The check is exact up to data, takes time proportional to the number of iterations, and stops at
//! a limit: it is for tests and fuzzing. Primitives use the symbolic check of
//! [`reduction_init`](crate::primitives) instead, which is cheap.
//!
//! Barriers in illegal positions are found without interpreting the nest.
//!
//! Nests before and after lowering are accepted. Before lowering, reductions are initialized by the
//! same pass that lowering uses, and the bounds of stores are respected.

mod barriers;
mod memory;
mod run;
mod turn;

use std::fmt;

use crate::nest::LoopNest;
use run::Run;

/// An error in a nest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// A read of an element that was never written.
    Undefined {
        /// The stage that reads it; `None` for a result that is never written.
        reader: Option<String>,
        /// The buffer.
        buffer: String,
        /// The element.
        element: Vec<i64>,
    },
    /// An out-of-bounds access.
    OutOfBounds {
        /// The stage that accesses it.
        stage: String,
        /// The buffer.
        buffer: String,
        /// The subscripts.
        element: Vec<i128>,
    },
    /// A data race: two workers, blocks or threads access one element, and one of them writes.
    Race {
        /// The stage of the later access.
        stage: String,
        /// The buffer.
        buffer: String,
        /// The element.
        element: Vec<i64>,
    },
    /// A barrier that not all threads of a block may reach.
    Divergent {
        /// The enclosing node: `a condition`, or a loop over threads.
        around: String,
    },
}

/// The result of a check that found no flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole nest was checked.
    Sound,
    /// The check stopped at the limit; the part that ran has no flaw.
    TooLong,
}

/// Checks a nest by interpreting at most about `limit` stores and elements.
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
    // A position from data may be any element that is ever written, which only the first run knows.
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
