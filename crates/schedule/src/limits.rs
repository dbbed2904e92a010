//! Limits: what a schedule may make of a program before it is refused.
//!
//! A schedule comes from a person, a search or a record of somebody else's. None of them may take the
//! process down: whatever its text says, it is refused quickly and before memory is spent, and what is
//! accepted can be compiled and run. Every way from a schedule to code goes through
//! [`Schedule::apply`](crate::Schedule::apply) or [`Step::apply`](crate::schedule::Step::apply), which
//! [`check`] the nest after every step; so the refusal names the step.
//!
//! What a program needs by itself is always allowed: each limit is the greater of a number and a
//! multiple of what the canonical nest has.

use crate::nest::{LoopNest, Size};
use crate::refusal::Refusal;

/// The longest text of a schedule, in bytes.
pub const MAX_BYTES: usize = 1 << 23;

/// The most steps that a schedule of any program may have.
pub const MAX_STEPS: usize = 10_000;

/// The most steps per statement of a program that is large by itself.
pub const STEPS_FACTOR: usize = 16;

/// The most loops that one `split` may make.
pub const MAX_PARTS: usize = 16;

/// The most loops inside each other. Passes and LLVM recurse over them.
pub const MAX_DEPTH: usize = 96;

/// The most iterations of all stores that are always allowed: about a second of work.
pub const MAX_ITERATIONS: u128 = 1 << 28;

/// How many times the iterations of the program a schedule may make, by rounding up and by computing
/// again.
pub const ITERATIONS_FACTOR: u128 = 32;

/// The largest expression, in operands, operators and terms of subscripts.
pub const MAX_EXPRESSION: usize = 20_000;

/// The most parts of all expressions together.
pub const MAX_TOTAL_PARTS: usize = 1_000_000;

/// The most operations that are written out, about as many instructions: LLVM's time grows with their
/// square.
pub const MAX_OPERATIONS: u128 = 100_000;

/// The most bytes of all buffers that are always allowed.
pub const MAX_MEMORY: u128 = 1 << 30;

/// How many times the bytes of the program's tensors a schedule may need.
pub const MEMORY_FACTOR: u128 = 16;

/// How many times the expressions and operations of the program a schedule may make of a program that
/// is large by itself.
pub const GROWTH: usize = 8;

/// The number of stores that a nest may always have after unrolling.
pub const MAX_STORES: usize = 20_000;

/// The number of tails that may always run apart.
pub const MAX_TAILS: usize = 500;

/// The most steps of a schedule for a nest.
pub(crate) fn most_steps(nest: &LoopNest) -> usize {
    MAX_STEPS.max(nest.own.stores.saturating_mul(STEPS_FACTOR))
}

/// The most stores of a nest after unrolling.
pub(crate) fn most_stores(nest: &LoopNest) -> usize {
    MAX_STORES.max(nest.own.stores.saturating_mul(GROWTH))
}

/// The most tails of a nest that run apart.
pub(crate) fn most_tails(nest: &LoopNest) -> usize {
    MAX_TAILS.max(nest.own.stores.saturating_mul(GROWTH))
}

/// Checks a nest against all limits.
///
/// # Errors
/// The first limit that is exceeded: what, how much, the limit and what to do.
pub fn check(nest: &LoopNest) -> Result<(), Refusal> {
    let (own, size) = (nest.own, Size::of(nest));
    let most = MAX_DEPTH.max(own.depth);
    if size.depth > most {
        return Err(exceeded("nests", size.depth, "loops inside each other", most)
            .help("split into fewer loops, or compute fewer stages inside each other"));
    }
    let most = MAX_EXPRESSION.max(own.expression.saturating_mul(GROWTH));
    if size.expression > most {
        return Err(exceeded("makes an expression of", size.expression, "parts", most)
            .help("inline fewer stages, or fuse and split loops fewer times"));
    }
    let most = most_parts(nest);
    if size.parts > most {
        return Err(exceeded("makes expressions of", size.parts, "parts altogether", most)
            .help("inline fewer stages"));
    }
    let most = MAX_ITERATIONS.max(own.iterations.saturating_mul(ITERATIONS_FACTOR));
    if size.iterations > most {
        let now = exceeded("makes", size.iterations, "iterations", most);
        return Err(Refusal::new(format!("{}; the program has {}", now.message, own.iterations))
            .help("use factors that are not far above the extents of their loops"));
    }
    let most = MAX_OPERATIONS.max(own.operations.saturating_mul(GROWTH as u128));
    if size.operations > most {
        return Err(exceeded("writes out", size.operations, "operations", most).help(
            "unroll fewer loops or loops of fewer iterations, use shorter vectors, or the tail \
             `guard` instead of `peel`",
        ));
    }
    let most = MAX_MEMORY.max(own.bytes.saturating_mul(MEMORY_FACTOR));
    if size.bytes > most {
        return Err(exceeded("needs", size.bytes, "bytes of memory", most)
            .help("use smaller factors, or cache and compute inside inner loops"));
    }
    Ok(())
}

/// The most parts of all expressions of a nest.
pub(crate) fn most_parts(nest: &LoopNest) -> usize {
    MAX_TOTAL_PARTS.max(nest.own.parts.saturating_mul(GROWTH))
}

/// A refusal that says what a schedule does, how much of it, and how much it may.
pub(crate) fn exceeded(
    does: &str,
    much: impl std::fmt::Display,
    what: &str,
    most: impl std::fmt::Display,
) -> Refusal {
    Refusal::new(format!("the schedule {does} {much} {what}, and the limit is {most}"))
}
