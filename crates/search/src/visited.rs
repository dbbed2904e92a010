//! [`Visited`]: the known points and their outcomes.

use std::collections::HashMap;

use tensorwright_space::{Point, Rng, SearchSpace};

use crate::Observation;

/// The number of samples for a new point before the whole space is scanned.
const MOST_DRAWS: usize = 1_000;

/// The number of samples from a list of legal points before the list is scanned.
const FEW_DRAWS: usize = 100;

/// Spaces up to this size are scanned before a search reports that it is exhausted.
const SMALL: u64 = 1 << 20;

/// The pending and observed points, with the fitness of the latter.
#[derive(Debug, Clone, Default)]
pub struct Visited {
    points: HashMap<Point, Option<f64>>,
    best: Option<(Point, f64)>,
    out: usize,
}

impl Visited {
    /// Marks a point as pending; returns whether it is new.
    pub fn propose(&mut self, point: &Point) -> bool {
        let new = !self.points.contains_key(point);
        if new {
            self.points.insert(point.clone(), None);
            self.out += 1;
        }
        new
    }

    /// Records an outcome, and returns its fitness.
    pub fn observe(&mut self, observation: &Observation) -> f64 {
        let fitness = observation.fitness();
        let before = self.points.insert(observation.point.clone(), Some(fitness));
        if before == Some(None) {
            self.out -= 1;
        }
        if fitness > 0.0 && self.best.as_ref().is_none_or(|(_, best)| fitness > *best) {
            self.best = Some((observation.point.clone(), fitness));
        }
        fitness
    }

    /// Whether a point is pending or observed.
    #[must_use]
    pub fn contains(&self, point: &Point) -> bool {
        self.points.contains_key(point)
    }

    /// The fitness of an observed point.
    #[must_use]
    pub fn fitness(&self, point: &Point) -> Option<f64> {
        self.points.get(point).copied().flatten()
    }

    /// The best observed point, with its fitness.
    #[must_use]
    pub fn best(&self) -> Option<&(Point, f64)> {
        self.best.as_ref()
    }

    /// The number of pending points.
    #[must_use]
    pub fn out(&self) -> usize {
        self.out
    }

    /// The number of pending and observed points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether no point is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Samples a new legal point uniformly; `None` if none is found. Only small spaces are known to
    /// have none.
    pub fn sample_new(&self, space: &SearchSpace, rng: &mut Rng) -> Option<Point> {
        if let Some(points) = space.legal_points() {
            return self.choose_new(points, rng);
        }
        let is_new = |point: &Point| !self.contains(point) && space.is_legal(point);
        let drawn = (0..MOST_DRAWS).map_while(|_| space.sample_legal(rng)).find(is_new);
        if drawn.is_some() || space.size() > SMALL.into() {
            return drawn;
        }
        let left: Vec<Point> = space.points().filter(is_new).collect();
        rng.choose(&left).cloned()
    }

    /// Samples a new point from a list uniformly.
    fn choose_new(&self, points: &[Point], rng: &mut Rng) -> Option<Point> {
        let is_new = |point: &&Point| !self.contains(point);
        let drawn = (0..FEW_DRAWS).filter_map(|_| rng.choose(points)).find(is_new);
        let left = || points.iter().filter(is_new).collect::<Vec<_>>();
        drawn.or_else(|| rng.choose(&left()).copied()).cloned()
    }
}
