//! Gaussian process regression.

/// A Gaussian process with zero mean after its observations.
#[derive(Debug, Clone)]
pub(super) struct Process {
    /// The Cholesky factor of the covariance of the observations, row by row.
    lower: Vec<f64>,
    /// The inverse of the covariance times the values.
    weights: Vec<f64>,
    log_likelihood: f64,
}

impl Process {
    /// The process after values with this covariance (row-major; the lower triangle is read);
    /// `None` if it is not positive definite.
    pub(super) fn new(mut covariance: Vec<f64>, values: &[f64]) -> Option<Self> {
        let n = values.len();
        factor(&mut covariance, n)?;
        let lower = covariance;
        let mut weights = values.to_vec();
        forward(&lower, &mut weights);
        let fit: f64 = weights.iter().map(|w| w * w).sum();
        let determinant: f64 = (0..n).map(|i| lower[i * n + i].ln()).sum();
        backward(&lower, &mut weights);
        Some(Self { lower, weights, log_likelihood: -0.5 * fit - determinant })
    }

    /// The log likelihood of the values, up to a constant.
    pub(super) fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// The mean and the variance at a point with this covariance to the observations and a prior
    /// variance of 1.
    pub(super) fn predict(&self, covariance: &mut [f64]) -> (f64, f64) {
        let mean = dot(covariance, &self.weights);
        forward(&self.lower, covariance);
        (mean, (1.0 - dot(covariance, covariance)).max(1e-9))
    }
}

/// Replaces a matrix by its Cholesky factor.
fn factor(matrix: &mut [f64], n: usize) -> Option<()> {
    for i in 0..n {
        let (above, row) = matrix.split_at_mut(i * n);
        let row = &mut row[..n];
        for j in 0..i {
            let other = &above[j * n..j * n + n];
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        let pivot = row[i] - dot(&row[..i], &row[..i]);
        if pivot.is_nan() || pivot <= 1e-12 {
            return None;
        }
        row[i] = pivot.sqrt();
    }
    Some(())
}

/// Solves L x = b in place.
fn forward(lower: &[f64], b: &mut [f64]) {
    let n = b.len();
    for i in 0..n {
        let row = &lower[i * n..i * n + i + 1];
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
}

/// Solves L^T x = b in place.
fn backward(lower: &[f64], b: &mut [f64]) {
    let n = b.len();
    for i in (0..n).rev() {
        b[i] /= lower[i * n + i];
        let x = b[i];
        let row = &lower[i * n..i * n + i];
        b[..i].iter_mut().zip(row).for_each(|(b, l)| *b -= l * x);
    }
}

/// A dot product with four parallel sums, which the compiler vectorizes; always in the same order.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (left, right) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = left.remainder().iter().zip(right.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in left.zip(right) {
        for lane in 0..4 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    rest + sums.iter().sum::<f64>()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is how a test speaks")]
mod tests {
    use super::*;

    #[test]
    fn a_process_goes_through_its_values_and_knows_nothing_far_away() {
        let places = [0.0, 0.7, 1.1, 2.5, 3.0, 4.2];
        let values = [1.0, -0.5, 0.2, 2.0, 1.5, 0.1];
        let near = |a: f64, b: f64| (-(a - b) * (a - b)).exp();
        let covariance: Vec<f64> =
            places.iter().flat_map(|a| places.iter().map(move |b| near(*a, *b))).collect();
        let process = Process::new(covariance, &values).unwrap();
        for (place, value) in places.iter().zip(values) {
            let mut k: Vec<f64> = places.iter().map(|other| near(*place, *other)).collect();
            let (mean, variance) = process.predict(&mut k);
            assert!((mean - value).abs() < 1e-6 && variance < 1e-6);
        }
        let (mean, variance) = process.predict(&mut [0.0; 6]);
        assert_eq!((mean, variance), (0.0, 1.0));
        assert!(process.log_likelihood().is_finite());
        assert!(Process::new(vec![1.0, 0.0, 2.0, 1.0], &[0.0, 0.0]).is_none());
    }
}
