//! [`Visited`]: which points are known, and what became of them.

use std::collections::HashMap;

use tensorwright_space::{Point, Rng, SearchSpace};

use crate::Observation;

/// How often a new point is drawn for before the whole space is looked through.
const MOST_DRAWS: usize = 1_000;

/// How often a new point is drawn for from a list of legal points before the list is looked through.
const FEW_DRAWS: usize = 100;

/// Spaces up to this size are looked through before a search says that it is exhausted.
const SMALL: u64 = 1 << 20;

/// The points that are out or came back, with the fitness of those that came back.
#[derive(Debug, Clone, Default)]
pub struct Visited {
    points: HashMap<Point, Option<f64>>,
    best: Option<(Point, f64)>,
    out: usize,
}

impl Visited {
    /// Marks a point as out; says whether it is new.
    pub fn propose(&mut self, point: &Point) -> bool {
        let new = !self.points.contains_key(point);
        if new {
            self.points.insert(point.clone(), None);
            self.out += 1;
        }
        new
    }

    /// Notes what became of a point, and returns its fitness.
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

    /// Whether a point is out or came back.
    #[must_use]
    pub fn contains(&self, point: &Point) -> bool {
        self.points.contains_key(point)
    }

    /// The fitness of a point that came back.
    #[must_use]
    pub fn fitness(&self, point: &Point) -> Option<f64> {
        self.points.get(point).copied().flatten()
    }

    /// The best point that came back, with its fitness.
    #[must_use]
    pub fn best(&self) -> Option<&(Point, f64)> {
        self.best.as_ref()
    }

    /// The number of points that are out.
    #[must_use]
    pub fn out(&self) -> usize {
        self.out
    }

    /// The number of points that are out or came back.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether no point is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// A legal point that is not known, each equally likely; `None` if none can be found. Only a
    /// small space is known to have none.
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

    /// One of a list of points that is not known, each equally likely.
    fn choose_new(&self, points: &[Point], rng: &mut Rng) -> Option<Point> {
        let is_new = |point: &&Point| !self.contains(point);
        let drawn = (0..FEW_DRAWS).filter_map(|_| rng.choose(points)).find(is_new);
        let left = || points.iter().filter(is_new).collect::<Vec<_>>();
        drawn.or_else(|| rng.choose(&left()).copied()).cloned()
    }
}
