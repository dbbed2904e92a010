//! Gaussian process model with a length scale per parameter.

use super::geometry::{Coordinates, Geometry, distance};
use super::process::Process;

/// The noise variance, relative to the variance of the values.
const NOISE: f64 = 0.01;

/// The factor of a length scale change during fitting.
const STEP: f64 = 1.6;

/// The range of inverse length scales.
const RANGE: std::ops::RangeInclusive<f64> = 0.02..=6.0;

/// The inverse length scale of every parameter: how fast performance changes with it.
#[derive(Debug, Clone)]
pub(super) struct Lengths(Vec<f64>);

/// The process for some observations and length scales.
#[derive(Debug)]
pub(super) struct Model {
    process: Process,
    lengths: Lengths,
    /// The coordinates of the observations, scaled by the lengths.
    places: Vec<Coordinates>,
}

impl Lengths {
    /// The prior: each parameter matters equally.
    pub(super) fn new(geometry: &Geometry) -> Self {
        let parameters = geometry.parameters().max(1);
        Self(vec![1.0 / (parameters as f64).sqrt(); parameters])
    }

    /// Changes each length scale if that increases the likelihood of the observations.
    pub(super) fn fit(&mut self, geometry: &Geometry, places: &[Coordinates], values: &[f64]) {
        let distances = Distances::new(geometry, places);
        let prior = 1.0 / (self.0.len() as f64).sqrt();
        let score = |lengths: &[f64]| {
            // A prior keeps length scales near the initial value without evidence.
            let doubt: f64 = lengths.iter().map(|l| (l / prior).ln().powi(2)).sum();
            let squares: Vec<f64> = lengths.iter().map(|l| l * l).collect();
            let process = Process::new(distances.covariance(&squares), values);
            process.map_or(f64::NEG_INFINITY, |p| p.log_likelihood() - 0.25 * doubt)
        };
        let mut best = score(&self.0);
        for parameter in 0..self.0.len() {
            let before = self.0[parameter];
            for tried in [before * STEP, before / STEP] {
                let kept = std::mem::replace(&mut self.0[parameter], tried);
                let found = if RANGE.contains(&tried) { score(&self.0) } else { f64::NEG_INFINITY };
                if found > best {
                    best = found;
                    break;
                }
                self.0[parameter] = kept;
            }
        }
    }

    /// The process after observations; `None` if the covariance is singular.
    pub(super) fn model(
        &self,
        geometry: &Geometry,
        places: &[Coordinates],
        values: &[f64],
    ) -> Option<Model> {
        let n = places.len();
        let places: Vec<Coordinates> =
            places.iter().map(|p| geometry.stretch(p, &self.0)).collect();
        let mut covariance = vec![0.0; n * n];
        for (i, a) in places.iter().enumerate() {
            let row = &mut covariance[i * n..];
            row.iter_mut().zip(&places[..i]).for_each(|(cell, b)| *cell = matern(distance(a, b)));
            row[i] = 1.0 + NOISE;
        }
        let process = Process::new(covariance, values)?;
        Some(Model { process, lengths: self.clone(), places })
    }
}

impl Model {
    /// The mean and the variance at a point.
    pub(super) fn predict(&self, geometry: &Geometry, place: &Coordinates) -> (f64, f64) {
        let place = geometry.stretch(place, &self.lengths.0);
        let near = |other: &Coordinates| matern(distance(&place, other));
        let mut covariance: Vec<f64> = self.places.iter().map(near).collect();
        self.process.predict(&mut covariance)
    }
}

/// The squared distances between points, per parameter.
struct Distances {
    n: usize,
    /// For every pair, the lower triangle row by row, one number per parameter.
    pairs: Vec<f64>,
}

impl Distances {
    fn new(geometry: &Geometry, places: &[Coordinates]) -> Self {
        let n = places.len();
        let mut pairs = Vec::with_capacity(n * (n + 1) / 2 * geometry.parameters());
        for (i, a) in places.iter().enumerate() {
            places[..i].iter().for_each(|b| pairs.extend(geometry.distances(a, b)));
        }
        Self { n, pairs }
    }

    fn covariance(&self, squares: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut covariance = vec![0.0; n * n];
        let mut pairs = self.pairs.chunks_exact(squares.len());
        for i in 0..n {
            for (place, pair) in covariance[i * n..i * n + i].iter_mut().zip(&mut pairs) {
                *place = matern(pair.iter().zip(squares).map(|(d, s)| d * s).sum());
            }
            covariance[i * n + i] = 1.0 + NOISE;
        }
        covariance
    }
}

/// The Matérn covariance with smoothness 5/2 at a squared distance.
fn matern(square: f64) -> f64 {
    let r = (5.0 * square).sqrt();
    (1.0 + r + r * r / 3.0) * (-r).exp()
}
