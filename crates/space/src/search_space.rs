//! [`SearchSpace`]: a product of parameters with rules.

use std::sync::Arc;

use num_bigint::BigUint;

use crate::Rng;
use crate::parameter::Parameter;
use crate::point::Point;
use crate::rules::{NoRules, Rejection, Rules};

/// The maximum number of samples for a legal point.
const MOST_DRAWS: usize = 100_000;

/// A product of parameters, with rules on its points. It is enumerated only on request.
#[derive(Debug, Clone)]
pub struct SearchSpace {
    parameters: Vec<Parameter>,
    rules: Arc<dyn Rules>,
}

impl SearchSpace {
    /// A space of these parameters with all points legal.
    #[must_use]
    pub fn new(parameters: Vec<Parameter>) -> Self {
        Self::with_rules(parameters, Arc::new(NoRules))
    }

    /// A space of these parameters with rules.
    #[must_use]
    pub fn with_rules(parameters: Vec<Parameter>, rules: Arc<dyn Rules>) -> Self {
        Self { parameters, rules }
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The number of points, including illegal ones.
    #[must_use]
    pub fn size(&self) -> BigUint {
        self.parameters.iter().map(|parameter| BigUint::from(parameter.count())).product()
    }

    /// Whether a point, perhaps from a file, belongs to this space.
    #[must_use]
    pub fn contains(&self, point: &Point) -> bool {
        let ranks = point.ranks();
        ranks.len() == self.parameters.len()
            && self.parameters.iter().zip(ranks).all(|(p, rank)| *rank < p.count())
    }

    /// Whether the rules allow a point.
    ///
    /// # Errors
    /// The first rule that rejects it.
    pub fn check(&self, point: &Point) -> Result<(), Rejection> {
        if !self.contains(point) {
            let reason = "the point is not in this space".to_owned();
            return Err(Rejection { rule: "space", reason });
        }
        self.rules.check(&self.parameters, point)
    }

    /// Whether the rules allow a point.
    #[must_use]
    pub fn is_legal(&self, point: &Point) -> bool {
        self.check(point).is_ok()
    }

    /// Samples a point uniformly, legal or not.
    #[must_use]
    pub fn sample(&self, rng: &mut Rng) -> Point {
        let rank = |parameter: &Parameter| rng.below(u64::from(parameter.count())) as u32;
        Point::new(self.parameters.iter().map(rank).collect::<Box<[u32]>>())
    }

    /// Samples a legal point uniformly; `None` if a hundred thousand samples are illegal.
    ///
    /// Parameters that the rules judge separately are sampled again separately: a program of many
    /// stages has legal points although hardly any sample is legal in all of them.
    #[must_use]
    pub fn sample_legal(&self, rng: &mut Rng) -> Option<Point> {
        if let Some(points) = self.legal_points() {
            return rng.choose(points).cloned();
        }
        let mut point = self.sample(rng);
        for _ in 0..MOST_DRAWS {
            let blamed = self.rules.to_blame(&self.parameters, &point);
            if blamed.is_empty() {
                return self.is_legal(&point).then_some(point);
            }
            for place in blamed {
                let count = self.parameters.get(place).map_or(1, Parameter::count);
                point = point.with(place, rng.below(u64::from(count)) as u32);
            }
        }
        None
    }

    /// All legal points in numeric order, if the rules are a list of them.
    #[must_use]
    pub fn legal_points(&self) -> Option<&[Point]> {
        self.rules.legal_points()
    }

    /// The total number of directions of all parameters.
    #[must_use]
    pub fn directions(&self) -> usize {
        self.parameters.iter().map(Parameter::directions).sum()
    }

    /// The parameter that a direction changes, and the direction's index there.
    #[must_use]
    pub fn direction(&self, mut direction: usize) -> Option<(usize, usize)> {
        for (place, parameter) in self.parameters.iter().enumerate() {
            if direction < parameter.directions() {
                return Some((place, direction));
            }
            direction -= parameter.directions();
        }
        None
    }

    /// The neighbour of a point along a direction, legal or not, if there is one.
    #[must_use]
    pub fn step(&self, point: &Point, direction: usize) -> Option<Point> {
        let (place, direction) = self.direction(direction)?;
        let next = self.parameters[place].step(point.rank(place), direction)?;
        Some(point.with(place, next))
    }

    /// The distinct neighbours of a point, legal or not: points that differ in one parameter by one
    /// step.
    #[must_use]
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        let mut all = Vec::new();
        for (place, parameter) in self.parameters.iter().enumerate() {
            let near = parameter.neighbours(point.rank(place));
            all.extend(near.into_iter().map(|rank| point.with(place, rank)));
        }
        all
    }

    /// The number of a point, from 0 to below [`SearchSpace::size`].
    #[must_use]
    pub fn number(&self, point: &Point) -> BigUint {
        let digits = self.parameters.iter().zip(point.ranks());
        digits.fold(BigUint::ZERO, |number, (parameter, rank)| number * parameter.count() + rank)
    }

    /// The point with a number; `None` if it does not exist.
    #[must_use]
    pub fn point(&self, number: &BigUint) -> Option<Point> {
        let mut rest = number.clone();
        let mut ranks = vec![0; self.parameters.len()];
        for (rank, parameter) in ranks.iter_mut().zip(&self.parameters).rev() {
            let count = parameter.count();
            *rank = u32::try_from(&rest % count).ok()?;
            rest /= count;
        }
        (rest == BigUint::ZERO).then(|| Point::new(ranks))
    }

    /// All points in numeric order, legal or not.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        std::iter::successors(Some(self.first()), |point| self.successor(point))
    }

    /// The point with number 0.
    #[must_use]
    pub fn first(&self) -> Point {
        Point::new(vec![0; self.parameters.len()])
    }

    /// The point with the next number; `None` after the last.
    #[must_use]
    pub fn successor(&self, point: &Point) -> Option<Point> {
        let mut ranks: Vec<u32> = point.ranks().to_vec();
        for (rank, parameter) in ranks.iter_mut().zip(&self.parameters).rev() {
            *rank += 1;
            if *rank < parameter.count() {
                return Some(Point::new(ranks));
            }
            *rank = 0;
        }
        None
    }

    /// The features of a point for a model, a constant number of them.
    #[must_use]
    pub fn features(&self, point: &Point) -> Vec<f32> {
        let mut features = Vec::new();
        for (parameter, rank) in self.parameters.iter().zip(point.ranks()) {
            parameter.features(*rank, &mut features);
        }
        features.extend(self.rules.features(&self.parameters, point));
        features
    }

    /// The values of a point: `tile.m=[16,4,4] order=k.0 m.1 tail=peel`.
    #[must_use]
    pub fn text(&self, point: &Point) -> String {
        let value = |(p, rank): (&Parameter, &u32)| format!("{}={}", p.name(), p.text(*rank));
        let all: Vec<String> = self.parameters.iter().zip(point.ranks()).map(value).collect();
        all.join(" ")
    }
}
