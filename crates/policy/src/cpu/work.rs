//! The work of a loop, for the decision to parallelize it.

use tensorwright_schedule::nest::{LoopNest, Store};

/// The minimum work for parallel execution, in simple iterations such as the sum of two elements:
/// less than this costs about as much as starting another worker.
pub(crate) const PARALLEL_WORK: i128 = 1 << 16;

/// The maximum instructions of a simple iteration.
const SIMPLE: u128 = 8;

/// The work of an iteration of a store in simple iterations. Function calls count more.
pub(crate) fn weight(nest: &LoopNest, store: &Store) -> i128 {
    i128::try_from(nest.instructions(store) / SIMPLE).unwrap_or(i128::MAX).max(1)
}
