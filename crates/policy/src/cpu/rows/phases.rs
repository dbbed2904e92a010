//! Phases of a row: results some apart that read tensors at even distances.

use tensorwright_schedule::access::{Accesses, Axis};

/// The most phases of a row that are computed one after the other.
const MOST_PHASES: i64 = 4;

/// How far apart results have to be for all of them to read elements an equal distance apart, if neighbours do not: the filters of a
/// mosaic depend on whether a column is even.
pub(crate) fn phases(accesses: &Accesses, axis: &Axis) -> Option<i64> {
    let apart = accesses.period(axis).filter(|apart| (2..=MOST_PHASES).contains(apart))?;
    let is_even = |stride: Option<i64>| stride == Some(0) || stride == Some(apart);
    accesses.reads.iter().all(|read| is_even(read.stride_of(axis, apart))).then_some(apart)
}
