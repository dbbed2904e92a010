//! How much work a loop is, for the decision whether workers share it.

use tensorwright_schedule::nest::{LoopNest, Store};

/// Less work than this is not worth a second worker: what it saves is the time until it has begun, about. It counts simple
/// iterations, such as the sum of two elements.
pub(crate) const PARALLEL_WORK: i128 = 1 << 16;

/// The instructions of a simple iteration, at most.
const SIMPLE: u128 = 8;

/// As how many simple iterations one of a store counts. Those that call functions take longer.
pub(crate) fn weight(nest: &LoopNest, store: &Store) -> i128 {
    i128::try_from(nest.instructions(store) / SIMPLE).unwrap_or(i128::MAX).max(1)
}
