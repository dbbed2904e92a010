//! [`Quartiles`]: the median and quartiles of numbers.

use serde::Serialize;

/// The median and the quartiles; an infinite one stands for "never" and is written as `null`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quartiles {
    /// The first quartile.
    pub lower: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub upper: f64,
}

impl Quartiles {
    /// The quartiles of some numbers; infinite if there are none.
    #[must_use]
    pub fn new(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        Self {
            lower: quantile(&numbers, 0.25),
            median: quantile(&numbers, 0.5),
            upper: quantile(&numbers, 0.75),
        }
    }
}

/// A quantile of sorted numbers, interpolated linearly.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::INFINITY };
    let place = share * last as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    // Zero times infinity is NaN.
    if part == 0.0 || low == high { low } else { low + part * (high - low) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_and_never_is_infinite() {
        let some = Quartiles::new(vec![4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((some.lower, some.median, some.upper), (2.0, 3.0, 4.0));
        let never = f64::INFINITY;
        let half = Quartiles::new(vec![1.0, 2.0, never, never]);
        assert_eq!((half.lower, half.median, half.upper), (1.75, never, never));
        assert_eq!(Quartiles::new(Vec::new()).median, never);
    }
}
