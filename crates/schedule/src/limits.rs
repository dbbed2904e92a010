//! Resource limits on schedules.
//!
//! A schedule comes from a user, a search or a database, and must never crash the process or
//! exhaust its memory. A schedule that exceeds a limit is refused quickly, before memory is spent;
//! an accepted one can be compiled and run. Every way from a schedule to code goes through
//! [`Schedule::apply`](crate::Schedule::apply) or [`Step::apply`](crate::schedule::Step::apply),
//! which [`check`] the nest after every step, so the refusal names the step.
//! The size of the program itself is always allowed: each limit is the maximum of a constant and a
//! multiple of the size of the canonical nest.

use crate::nest::{LoopNest, Size};
use crate::refusal::Refusal;

/// The longest text of a schedule, in bytes.
pub const MAX_BYTES: usize = 1 << 23;

/// The most steps of a schedule for any program.
pub const MAX_STEPS: usize = 10_000;

/// The most steps per statement of a large program.
pub const STEPS_FACTOR: usize = 16;

/// The most loops that one `split` creates.
pub const MAX_PARTS: usize = 16;

/// The deepest loop nest. Passes and LLVM recurse over loops.
pub const MAX_DEPTH: usize = 96;

/// The iterations of all stores that are always allowed: about a second of work.
pub const MAX_ITERATIONS: u128 = 1 << 28;

/// The largest factor by which rounding up and recomputation may multiply the program's iterations.
pub const ITERATIONS_FACTOR: u128 = 32;

/// The largest expression, in operands, operators and terms of subscripts.
pub const MAX_EXPRESSION: usize = 20_000;

/// The most parts of all expressions.
pub const MAX_TOTAL_PARTS: usize = 1_000_000;

/// The most operations after unrolling, about one instruction each: LLVM's time grows
/// quadratically.
pub const MAX_OPERATIONS: u128 = 100_000;

/// The bytes of all buffers that are always allowed.
pub const MAX_MEMORY: u128 = 1 << 30;

/// The largest factor by which a schedule may multiply the bytes of the program's tensors.
pub const MEMORY_FACTOR: u128 = 16;

/// The largest factor by which a schedule may multiply the expressions and operations of a large
/// program.
pub const GROWTH: usize = 8;

/// The stores after unrolling that are always allowed.
pub const MAX_STORES: usize = 20_000;

/// The peeled tails that are always allowed.
pub const MAX_TAILS: usize = 500;

/// The most steps of a schedule for a nest.
pub(crate) fn most_steps(nest: &LoopNest) -> usize {
    MAX_STEPS.max(nest.own.stores.saturating_mul(STEPS_FACTOR))
}

/// The most stores of a nest after unrolling.
pub(crate) fn most_stores(nest: &LoopNest) -> usize {
    MAX_STORES.max(nest.own.stores.saturating_mul(GROWTH))
}

/// The most peeled tails of a nest.
pub(crate) fn most_tails(nest: &LoopNest) -> usize {
    MAX_TAILS.max(nest.own.stores.saturating_mul(GROWTH))
}

/// Checks a nest against all limits.
///
/// # Errors
/// The first limit that is exceeded: which, by how much, and how to fix it.
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

/// The refusal of a schedule that exceeds a limit.
pub(crate) fn exceeded(
    does: &str,
    much: impl std::fmt::Display,
    what: &str,
    most: impl std::fmt::Display,
) -> Refusal {
    Refusal::new(format!("the schedule {does} {much} {what}, and the limit is {most}"))
}
