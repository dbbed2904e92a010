//! Bayesian optimisation with Gaussian processes (Jones, Schonlau and Welch 1998).
//!
//! The next trial is the point with the largest expected improvement.
//!
//! It is in none of the five papers. The portfolio uses it to learn from a few dozen trials, which
//! are too few for boosted trees and networks. It models the logarithm of the speed over each
//! parameter's features with a Matérn 5/2 kernel; one length scale per parameter is fitted as
//! trials come in.
//!
//! Pending points count as if they had their predicted values, so that a batch spreads.

mod geometry;
mod model;
mod process;

use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};
use geometry::{Coordinates, Geometry};
use model::{Lengths, Model};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("gaussian", "Bayesian optimisation, Jones et al. 1998", |space, settings| {
        Box::new(Gaussian::new(space, settings))
    });

/// The number of points before the model is used.
const FIRST: usize = 10;

/// The number of random points per initial point, of which the farthest from all known points is
/// taken.
const SPREAD: usize = 20;

/// The maximum number of observations for the model: the best half, and the latest.
const MOST_KNOWN: usize = 96;

/// The maximum number of pending points in the model; others may never come back.
const MOST_OUT: usize = 16;

/// The number of trials between two fits of the length scales.
const FIT_EVERY: usize = 4;

/// Log speeds are clamped at this distance below the best.
const DEPTH: f64 = 3.0;

/// The numbers of candidates: random points, and moves from the best.
const RANDOM: usize = 80;
const NEAR: usize = 100;
const BESTS: usize = 4;

/// The number of uphill steps on the expected improvement from the best of these.
const CLIMB: usize = 3;

/// Bayesian search.
#[derive(Debug)]
struct Gaussian {
    base: Base,
    geometry: Geometry,
    lengths: Lengths,
    known: Vec<EvaluatedPoint>,
    out: Vec<Point>,
    /// The number of observations at the last fit.
    fitted: usize,
}

#[derive(Debug, Clone)]
struct EvaluatedPoint {
    point: Point,
    place: Coordinates,
    fitness: f64,
}

/// The expected-improvement acquisition function: a model, and the best value.
struct Acquisition {
    model: Model,
    best: f64,
}

impl Gaussian {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        let geometry = Geometry::new(&space);
        let lengths = Lengths::new(&geometry);
        let base = Base::new(space, settings);
        Self { base, geometry, lengths, known: Vec::new(), out: Vec::new(), fitted: 0 }
    }

    fn point(&mut self) -> Option<Point> {
        let point = self.base.start().or_else(|| self.choose()).or_else(|| self.base.random())?;
        if self.out.len() >= MOST_OUT {
            self.out.remove(0);
        }
        self.out.push(point.clone());
        Some(point)
    }

    fn choose(&mut self) -> Option<Point> {
        let measured = self.known.iter().any(|known| known.fitness > 0.0);
        if self.known.len() < FIRST || !measured {
            return self.spread();
        }
        let acquisition = self.acquisition()?;
        let candidates = self.candidates();
        let mut best = self.most_promising(&acquisition, candidates)?;
        for _ in 0..CLIMB {
            let near = self.base.space.neighbours(&best.0);
            match self.most_promising(&acquisition, near) {
                Some(better) if better.1 > best.1 => best = better,
                _ => break,
            }
        }
        self.base.claim(&best.0).then_some(best.0)
    }

    /// A random point far from all others.
    fn spread(&mut self) -> Option<Point> {
        let others: Vec<Coordinates> = self.known.iter().map(|known| known.place.clone()).collect();
        let out = self.out.iter().map(|point| self.geometry.place(&self.base.space, point));
        let others: Vec<Coordinates> = others.into_iter().chain(out).collect();
        let mut best: Option<(Point, f64)> = None;
        for _ in 0..SPREAD {
            let point = self.base.visited.sample_new(&self.base.space, &mut self.base.rng)?;
            let place = self.geometry.place(&self.base.space, &point);
            let distance =
                |other: &Coordinates| self.geometry.distances(&place, other).sum::<f64>();
            let nearest = others.iter().map(distance).fold(f64::INFINITY, f64::min);
            if best.as_ref().is_none_or(|(_, farthest)| nearest > *farthest) {
                best = Some((point, nearest));
            }
        }
        best.map(|(point, _)| point).filter(|point| self.base.claim(point))
    }

    /// The model of observations, and of pending points at their predicted values.
    fn acquisition(&mut self) -> Option<Acquisition> {
        let mut places: Vec<Coordinates> =
            self.known.iter().map(|known| known.place.clone()).collect();
        let mut values = standardised(&self.known);
        let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.base.visited.len() >= self.fitted + FIT_EVERY {
            // The first fit needs more iterations.
            let sweeps = if self.fitted == 0 { 3 } else { 1 };
            (0..sweeps).for_each(|_| self.lengths.fit(&self.geometry, &places, &values));
            self.fitted = self.base.visited.len();
        }
        let model = self.lengths.model(&self.geometry, &places, &values)?;
        if self.out.is_empty() {
            return Some(Acquisition { model, best });
        }
        for point in &self.out {
            let place = self.geometry.place(&self.base.space, point);
            values.push(model.predict(&self.geometry, &place).0);
            places.push(place);
        }
        let model = self.lengths.model(&self.geometry, &places, &values)?;
        Some(Acquisition { model, best })
    }

    /// Random points, and single moves and pairs of moves from the best.
    fn candidates(&mut self) -> Vec<Point> {
        let Self { base, known, .. } = self;
        let mut bests: Vec<&EvaluatedPoint> =
            known.iter().filter(|known| known.fitness > 0.0).collect();
        bests.sort_by(|a, b| b.fitness.total_cmp(&a.fitness));
        bests.truncate(BESTS);
        let mut near: Vec<Point> = Vec::new();
        for best in bests {
            let mut single = base.space.neighbours(&best.point);
            base.rng.shuffle(&mut single);
            for point in single.iter().take(NEAR / BESTS) {
                near.extend(base.rng.choose(&base.space.neighbours(point)).cloned());
            }
            near.extend(single.into_iter().take(NEAR / BESTS));
        }
        let random = (0..RANDOM).map_while(|_| base.visited.sample_new(&base.space, &mut base.rng));
        near.extend(random);
        near
    }

    /// The new legal point with the largest expected improvement.
    fn most_promising(
        &self,
        acquisition: &Acquisition,
        points: Vec<Point>,
    ) -> Option<(Point, f64)> {
        let Base { space, visited, .. } = &self.base;
        let new = points.into_iter().filter(|p| !visited.contains(p) && space.is_legal(p));
        let mut best: Option<(Point, f64)> = None;
        for point in new {
            let place = self.geometry.place(space, &point);
            let (mean, variance) = acquisition.model.predict(&self.geometry, &place);
            let promise = expected_improvement(mean - acquisition.best, variance.sqrt());
            if best.as_ref().is_none_or(|(_, other)| promise > *other) {
                best = Some((point, promise));
            }
        }
        best
    }

    /// Keeps the best half and the latest observations.
    fn forget(&mut self) {
        if self.known.len() <= MOST_KNOWN {
            return;
        }
        let older = self.known.len() - MOST_KNOWN / 2;
        let worst =
            (0..older).min_by(|a, b| self.known[*a].fitness.total_cmp(&self.known[*b].fitness));
        worst.map(|place| self.known.remove(place));
    }
}

/// The logarithms of fitness, clamped below, with mean 0 and variance 1.
fn standardised(known: &[EvaluatedPoint]) -> Vec<f64> {
    let best = known.iter().map(|known| known.fitness).fold(0.0, f64::max);
    let depth = |known: &EvaluatedPoint| (known.fitness / best).ln().max(-DEPTH);
    let mut values: Vec<f64> = known.iter().map(depth).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let scale = 1.0 / variance.sqrt().max(1e-6);
    values.iter_mut().for_each(|value| *value = (*value - mean) * scale);
    values
}

/// The expected improvement of a normal variable over 0. Far below 0 only its logarithm would be
/// precise; there the mean alone orders hopeless points.
fn expected_improvement(mean: f64, deviation: f64) -> f64 {
    let z = mean / deviation;
    if z < -6.0 {
        return 1e-12 * z;
    }
    let density = (-0.5 * z * z).exp() * 0.398_942_280_401_432_7;
    mean * normal(z) + deviation * density
}

/// The normal distribution function (Abramowitz and Stegun 26.2.17; error below 1e-7).
fn normal(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let polynomial = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = polynomial * (-0.5 * z * z).exp() * 0.398_942_280_401_432_7;
    if z > 0.0 { 1.0 - tail } else { tail }
}

impl SearchStrategy for Gaussian {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for Observation { point, .. } in observations {
            self.out.retain(|other| other != point);
        }
        for observation in observations {
            let Some(fitness) = self.base.observe(observation) else { continue };
            let point = observation.point.clone();
            let place = self.geometry.place(&self.base.space, &point);
            self.known.retain(|known| known.point != point);
            self.known.push(EvaluatedPoint { point, place, fitness });
            self.forget();
        }
    }
}
