//! Costs of kernels by size: measured, or scaled estimates.
//!
//! ```text
//! guess     64: 3 us   256: 8 us   1024: 28 us
//! measured             256: 4 us
//! price     64: 1.5    256: 4      1024: 14
//! ```

use std::collections::BTreeMap;

/// Measured kernel costs by value, in the unit of the estimates.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Prices(BTreeMap<i64, f64>);

impl Prices {
    /// Sets the measured cost of the kernel for a value.
    pub(super) fn measure(&mut self, value: i64, cost: f64) {
        self.0.insert(value, cost);
    }

    /// The measured cost of the kernel for a value.
    fn measured(&self, value: i64) -> Option<f64> {
        self.0.get(&value).copied()
    }

    /// The cost of the kernel for a value. Without a measurement, the estimate is scaled like those
    /// of its neighbours.
    pub(super) fn of(&self, value: i64, guess: impl Fn(i64) -> f64) -> f64 {
        if let Some(cost) = self.measured(value) {
            return cost;
        }
        let error = |(value, cost): (&i64, &f64)| (*value, cost / guess(*value));
        let below = self.0.range(..value).next_back().map(error);
        let above = self.0.range(value..).next().map(error);
        let error = match (below, above) {
            (Some((low, below)), Some((high, above))) => {
                let log = |value: i64| (value as f64).ln();
                let share = (log(value) - log(low)) / (log(high) - log(low));
                below * (1.0 - share) + above * share
            }
            (Some((_, error)), None) | (None, Some((_, error))) => error,
            (None, None) => 1.0,
        };
        guess(value) * error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_follows_from_what_was() {
        let mut prices = Prices::default();
        let guess = |value: i64| 100.0 + value as f64;
        assert_eq!(prices.of(300, guess), 400.0);
        prices.measure(300, 200.0);
        assert_eq!((prices.of(300, guess), prices.measured(300)), (200.0, Some(200.0)));
        assert_eq!((prices.of(100, guess), prices.of(900, guess)), (100.0, 500.0));
        prices.measure(4800, 4900.0);
        // Halfway between both on a logarithmic scale.
        assert!((prices.of(1200, guess) - 0.75 * 1300.0).abs() < 1e-9);
        assert_eq!((prices.of(9600, guess), prices.measured(1200)), (9700.0, None));
    }
}
