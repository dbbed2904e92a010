//! Medians and quartiles, which are robust against interruptions.

/// The `q`-quantile of the values (interpolated); NaN if there are none.
#[must_use]
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let share = position - below as f64;
    values[below] + (values[above] - values[below]) * share
}

/// The median, and the interquartile range relative to it; both NaN if there are no values.
#[must_use]
pub fn median_and_spread(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    let median = quantile(&mut values, 0.5);
    let spread = (quantile(&mut values, 0.75) - quantile(&mut values, 0.25)) / median;
    (median, spread)
}

#[cfg(test)]
mod tests {
    use super::{median_and_spread, quantile};

    #[test]
    fn quantiles_interpolate() {
        let mut values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&mut values, 0.0), 1.0);
        assert_eq!(quantile(&mut values, 0.5), 2.5);
        assert_eq!(quantile(&mut values, 1.0), 4.0);
        assert_eq!(quantile(&mut [7.0], 0.3), 7.0);
        assert!(quantile(&mut [], 0.5).is_nan());
    }

    #[test]
    fn outliers_do_not_move_the_median() {
        let (median, spread) = median_and_spread(&[10.0, 11.0, 9.0, 10.0, 1e9]);
        assert_eq!(median, 10.0);
        assert!((spread - 0.1).abs() < 1e-12);
    }
}
