//! Phases of a row: strided results whose reads have a constant stride.

use tensorwright_schedule::access::{Accesses, Axis};

/// The maximum number of phases of a row.
const MOST_PHASES: i64 = 4;

/// The smallest stride of results along a loop for which all reads have a constant stride, if
/// neighbours do not: the filters of a mosaic depend on whether a column is even.
pub(crate) fn phases(accesses: &Accesses, axis: &Axis) -> Option<i64> {
    let apart = accesses.period(axis).filter(|apart| (2..=MOST_PHASES).contains(apart))?;
    let is_even = |stride: Option<i64>| stride == Some(0) || stride == Some(apart);
    accesses.reads.iter().all(|read| is_even(read.stride_of(axis, apart))).then_some(apart)
}
