//! The matrices of a minimal filtering algorithm F(m, r).
//!
//! It computes `m` results of a filter with `r` taps by `m + r - 1` multiplications (Winograd 1980;
//! Lavin and Gray 2016).
//!
//! They are the transposed Toom-Cook algorithm. With points `a_0, a_1, ...` and infinity, the
//! product of two polynomials is interpolated from its values at the points; the transpose is
//!
//! ```text
//! y = AT [(G g) * (BT d)]
//! AT  powers of the points                            G  powers, divided by f_j = prod (a_j - a_l)
//! BT  row j: the coefficients of prod (x - a_l) without factor j; last row: of all factors
//! ```

/// The points, in the order of use: small numbers keep rounding errors small.
const POINTS: [f64; 5] = [0.0, 1.0, -1.0, 2.0, -2.0];

/// The most multiplications along a dimension: with more points, rounding errors grow fast.
pub(super) const MOST_PRODUCTS: usize = POINTS.len() + 1;

/// A matrix by rows.
pub(super) type Matrix = Vec<Vec<f64>>;

/// The matrices of F(m, r).
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// The results of a tile.
    pub(super) results: usize,
    /// From products to results.
    pub(super) at: Matrix,
    /// From taps to factors.
    pub(super) g: Matrix,
    /// From data to factors.
    pub(super) bt: Matrix,
}

impl Filter {
    /// The matrices for numbers of results and taps; `None` if they need too many points.
    pub(super) fn new(results: usize, taps: usize) -> Option<Self> {
        let products = (results + taps).checked_sub(1)?;
        if results < 2 || taps < 2 || products > MOST_PRODUCTS {
            return None;
        }
        let points = POINTS.get(..products - 1)?;
        let last = |length: usize, row: usize| f64::from(u8::from(row + 1 == length));
        let at = (0..results).map(|power| {
            let powers = points.iter().map(|point| point.powi(power as i32));
            powers.chain([last(results, power)]).collect()
        });
        let mut g: Matrix = Vec::new();
        let mut bt: Matrix = Vec::new();
        for (number, point) in points.iter().enumerate() {
            let others: Vec<f64> = others(points, number);
            let scale: f64 = others.iter().map(|other| point - other).product();
            g.push((0..taps).map(|power| point.powi(power as i32) / scale).collect());
            bt.push(polynomial(&others, products));
        }
        g.push((0..taps).map(|power| last(taps, power)).collect());
        bt.push(polynomial(points, products));
        Some(Self { results, at: at.collect(), g, bt })
    }

    /// The number of multiplications of a tile.
    pub(super) fn products(&self) -> usize {
        self.bt.len()
    }

    /// The growth of magnitudes compared to the direct sum, if all data have one magnitude and all
    /// taps another: the largest row of `|AT| (|G| |g| * |BT| |d|)`, divided by the number of taps.
    pub(super) fn amplification(&self) -> f64 {
        let norm = |row: &Vec<f64>| row.iter().map(|x| x.abs()).sum::<f64>();
        let result = |row: &Vec<f64>| {
            let products = row.iter().zip(&self.g).zip(&self.bt);
            products.map(|((a, g), b)| a.abs() * norm(g) * norm(b)).sum::<f64>()
        };
        let taps = self.g.first().map_or(1, Vec::len) as f64;
        self.at.iter().map(result).fold(0.0, f64::max) / taps
    }

    /// The number of roundings of a value on its way through the three matrices: a product and the
    /// additions of a row each, and the coefficients of `G`, which are no binary fractions.
    pub(super) fn roundings(&self) -> f64 {
        let terms = |row: &Vec<f64>| row.iter().filter(|x| **x != 0.0).count();
        let most = |matrix: &Matrix| matrix.iter().map(terms).max().unwrap_or_default();
        (most(&self.at) + most(&self.g) + most(&self.bt) + 1) as f64
    }
}

fn others(points: &[f64], without: usize) -> Vec<f64> {
    let kept = points.iter().enumerate().filter(|(number, _)| *number != without);
    kept.map(|(_, point)| *point).collect()
}

/// The coefficients of the polynomial with these roots, constant term first.
fn polynomial(roots: &[f64], length: usize) -> Vec<f64> {
    let mut coefficients = vec![0.0; length];
    coefficients[0] = 1.0;
    for (degree, root) in roots.iter().enumerate() {
        for power in (0..=degree + 1).rev() {
            let lower = if power == 0 { 0.0 } else { coefficients[power - 1] };
            coefficients[power] = lower - root * coefficients[power];
        }
    }
    coefficients
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(matrix: &Matrix, vector: &[f64]) -> Vec<f64> {
        let row = |row: &Vec<f64>| row.iter().zip(vector).map(|(a, x)| a * x).sum();
        matrix.iter().map(row).collect()
    }

    #[test]
    fn filters_are_correlations() {
        for (results, taps) in [(2, 2), (3, 2), (2, 3), (4, 3), (2, 5), (3, 4), (5, 2), (4, 2)] {
            let filter = Filter::new(results, taps).unwrap();
            let g: Vec<f64> = (0..taps).map(|k| 0.5 + k as f64).collect();
            let d: Vec<f64> = (0..filter.products()).map(|k| (k * k) as f64 - 3.0).collect();
            let products: Vec<f64> = apply(&filter.g, &g)
                .iter()
                .zip(apply(&filter.bt, &d))
                .map(|(u, v)| u * v)
                .collect();
            let y = apply(&filter.at, &products);
            for (i, y) in y.iter().enumerate() {
                let direct: f64 = (0..taps).map(|k| g[k] * d[i + k]).sum();
                assert!((y - direct).abs() < 1e-9, "F({results}, {taps}): {y} for {direct}");
            }
        }
    }

    #[test]
    fn the_matrices_of_lavin_and_gray() {
        let filter = Filter::new(4, 3).unwrap();
        assert_eq!(filter.bt[0], [4.0, 0.0, -5.0, 0.0, 1.0, 0.0]);
        assert_eq!(filter.bt[5], [0.0, 4.0, 0.0, -5.0, 0.0, 1.0]);
        assert_eq!(filter.at[3], [0.0, 1.0, -1.0, 8.0, -8.0, 1.0]);
        assert_eq!(filter.g[0], [0.25, 0.0, 0.0]);
    }

    #[test]
    fn errors_grow_with_the_tile() {
        let filter = |results| Filter::new(results, 3).unwrap();
        // F(2, 3): the second row is |1| 1.5 * 2 + |-1| 1.5 * 2 + |1| 1 * 2, by three taps.
        assert!((filter(2).amplification() - 8.0 / 3.0).abs() < 1e-12);
        assert!(filter(2).amplification() < filter(4).amplification());
        assert_eq!(filter(4).roundings(), 5.0 + 3.0 + 4.0 + 1.0);
        assert!(Filter::new(5, 3).is_none() && Filter::new(1, 3).is_none());
    }
}
