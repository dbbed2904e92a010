//! What the kernels of buckets and the copies around them cost, in cycles.

use super::{Buckets, Costs, Layout};

/// Cycles that a call costs whatever it computes.
const CALL: f64 = 60.0;

/// Bytes that are copied in a cycle.
const COPY_BYTES: f64 = 8.0;

/// Cycles that a row costs whatever its length.
const COPY_ROW: f64 = 12.0;

/// The costs of buckets whose kernels take so many cycles each.
#[must_use]
pub fn costs(buckets: &Buckets, cycles: &[f64]) -> Costs {
    let layouts = buckets.layouts();
    let varying = || layouts.iter().filter(|layout| layout.varies);
    let bytes_per_step = |layout: &Layout| (layout.rows * layout.step) as f64;
    Costs {
        kernels: cycles.iter().map(|cycles| cycles + CALL).collect(),
        copy_per_step: varying().map(bytes_per_step).sum::<f64>() / COPY_BYTES,
        copy_once: varying().map(|layout| layout.rows as f64).sum::<f64>() * COPY_ROW,
        always_copies: varying().any(|layout| layout.rows > 1),
    }
}
