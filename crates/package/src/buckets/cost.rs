//! Cost estimates of bucketed kernels and their copies, in cycles.

use super::prices::Prices;
use super::{Buckets, Costs, Layout};

/// The overhead of a call in cycles.
const CALL: f64 = 60.0;

/// Bytes copied per cycle.
const COPY_BYTES: f64 = 8.0;

/// The overhead of copying a row in cycles.
const COPY_ROW: f64 = 12.0;

/// The assumed clock rate in Hz, which makes measured times comparable with estimates.
const CLOCK: f64 = 3e9;

/// The cycles of each bucket's kernel: measured where known, otherwise scaled estimates.
#[must_use]
pub fn measured_cycles(values: &[i64], estimates: &[f64], seconds: &[Option<f64>]) -> Vec<f64> {
    let mut prices = Prices::default();
    for (value, seconds) in values.iter().zip(seconds) {
        if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
            prices.measure(*value, seconds * CLOCK);
        }
    }
    let estimate = |value: i64| {
        let number = values.iter().position(|other| *other == value).unwrap_or(0);
        estimates.get(number).map_or(1.0, |estimate| estimate.max(1.0))
    };
    values.iter().map(|value| prices.of(*value, estimate)).collect()
}

/// The costs of buckets with these kernel cycles.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_records_replace_estimates() {
        let (values, estimates) = ([4, 8, 16], [100.0, 200.0, 400.0]);
        assert_eq!(measured_cycles(&values, &estimates, &[None; 3]), estimates);
        // A tuned kernel twice as fast as estimated halves the other estimates.
        let found = measured_cycles(&values, &estimates, &[None, Some(100.0 / CLOCK), None]);
        assert!(found.iter().zip([50.0, 100.0, 200.0]).all(|(a, b)| (a - b).abs() < 1e-6));
        assert_eq!(measured_cycles(&values, &estimates, &[Some(0.0); 3]), estimates);
    }
}
