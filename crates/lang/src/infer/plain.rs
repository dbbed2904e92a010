//! Compares plain subscripts, which are single index variables.
//!
//! They must agree on the extent: `y(n,d) = x(n,d) + b(d)` means all of `x` and all of `b`, or it
//! is a mistake.
//!
//! A window (`x(i + k)`) or a stride (`x(2*i)`) is narrower than its tensor, so only plain
//! subscripts are compared. A guarded one gives no limit.

use super::access::Access;
use super::query::{Limit, Range, RangeContext};
use super::rounds::{Origin, SettledRange};
use crate::dtype::DType;
use crate::program::{AxisId, TensorId};

/// Two plain subscripts of one variable with different extents, by access number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disagreement {
    pub(crate) var: usize,
    /// The access with the smallest extent.
    pub(crate) narrow: usize,
    /// The first with a larger one.
    pub(crate) wide: usize,
}

/// Per variable without a `where`, the plain subscripts that limit it to different extents.
pub(crate) fn disagreements(
    settled: &[SettledRange],
    accesses: &[Access<'_>],
    dtype: &impl Fn(TensorId) -> DType,
) -> Vec<Disagreement> {
    let mut ranges: Vec<Option<Range>> = settled.iter().map(|s| Some(s.range)).collect();
    let mut found = Vec::new();
    for (var, settled) in settled.iter().enumerate() {
        if matches!(settled.origin, Origin::Given) {
            continue;
        }
        let axis = AxisId(var as u32);
        let plain = |number: &usize| accesses[*number].index.as_axis() == Some(axis);
        let plain: Vec<usize> = (0..accesses.len()).filter(plain).collect();
        let extent = |number: &usize| accesses[*number].extent;
        if plain.iter().all(|number| extent(number) == extent(&plain[0])) {
            continue;
        }
        let range = ranges[var].take();
        let known = RangeContext { ranges: &ranges, dtype };
        let limits = |number: &usize| {
            let access = &accesses[*number];
            known.limit(access, axis) == Limit::Above(access.extent)
        };
        let limits: Vec<usize> = plain.into_iter().filter(limits).collect();
        ranges[var] = range;
        let Some(narrow) = limits.iter().copied().min_by_key(extent) else { continue };
        let Some(wide) = limits.into_iter().find(|number| extent(number) > extent(&narrow)) else {
            continue;
        };
        found.push(Disagreement { var, narrow, wide });
    }
    found
}
