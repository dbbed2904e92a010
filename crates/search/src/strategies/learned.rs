//! Common parts of learning strategies: feature encoding, and replay memory.

use tensorwright_outcome::Outcome;
use tensorwright_space::{Point, Rng, SearchSpace};

use crate::Observation;
use crate::base::Base;

/// The number of points that determine the scale of features.
const SAMPLE: usize = 256;

/// Scaled features are clipped at this value: an outlier must not dominate a network.
const FURTHEST: f32 = 4.0;

/// The encoding of points for a network: the space's features, each with mean 0 and variance 1 over
/// the space. The papers use the raw vector of a point; with splits that reach into the thousands
/// next to flags of 0 and 1, training is slow or fails.
#[derive(Debug, Clone)]
pub(super) struct Encoding {
    /// The mean and inverse standard deviation of each feature.
    scales: Vec<(f32, f32)>,
}

impl Encoding {
    pub(super) fn new(space: &SearchSpace, rng: &mut Rng) -> Self {
        let rows: Vec<Vec<f32>> = (0..SAMPLE).map(|_| space.features(&space.sample(rng))).collect();
        let width = rows.first().map_or(0, Vec::len);
        let scale = |feature: usize| {
            let values =
                || rows.iter().filter_map(|row| row.get(feature)).filter(|v| v.is_finite());
            let count = values().count().max(1) as f32;
            let mean = values().sum::<f32>() / count;
            let variance = values().map(|v| (v - mean) * (v - mean)).sum::<f32>() / count;
            (mean, if variance > 1e-12 { 1.0 / variance.sqrt() } else { 0.0 })
        };
        Self { scales: (0..width).map(scale).collect() }
    }

    /// The number of features.
    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    pub(super) fn encode(&self, space: &SearchSpace, point: &Point) -> Vec<f32> {
        let scaled = |(value, (mean, factor)): (f32, &(f32, f32))| {
            let value = (value - mean) * factor;
            if value.is_nan() { 0.0 } else { value.clamp(-FURTHEST, FURTHEST) }
        };
        space.features(point).into_iter().zip(&self.scales).map(scaled).collect()
    }
}

/// A replay memory of the latest items, with a maximum size.
#[derive(Debug, Clone)]
pub(super) struct Memory<T> {
    items: Vec<T>,
    capacity: usize,
    oldest: usize,
}

impl<T> Memory<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { items: Vec::new(), capacity: capacity.max(1), oldest: 0 }
    }

    pub(super) fn push(&mut self, item: T) {
        if self.items.len() < self.capacity {
            self.items.push(item);
        } else {
            self.items[self.oldest] = item;
            self.oldest = (self.oldest + 1) % self.capacity;
        }
    }

    /// Samples `count` items with replacement; none if the memory is empty.
    pub(super) fn sample(&self, count: usize, rng: &mut Rng) -> Vec<&T> {
        (0..count).filter_map(|_| rng.choose(&self.items)).collect()
    }
}

/// The directions along which a point has a neighbour, legal or not.
pub(super) fn open_directions(space: &SearchSpace, point: &Point) -> Vec<usize> {
    (0..space.directions()).filter(|d| space.step(point, *d).is_some()).collect()
}

/// Records an observation, and returns the performance of its point if it is informative: a lost
/// device says nothing about a point, and neither does a point of another space.
pub(super) fn news(base: &mut Base, observation: &Observation) -> Option<f64> {
    if !base.space.contains(&observation.point) {
        return None;
    }
    let known = base.visited.fitness(&observation.point).is_some_and(|value| value > 0.0);
    let value = base.visited.observe(observation);
    (!known && observation.outcome != Outcome::DeviceLost).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_space::Parameter;
    use tensorwright_space::parameter::{Categorical, Discrete, Factorization, Splits};

    #[test]
    fn features_are_scaled_over_the_space() {
        let space = SearchSpace::new(vec![
            Parameter::new("tile", Factorization::new(1024, 3, Splits::Divisible)),
            Parameter::new("unroll", Discrete::new([0, 16, 512])),
            Parameter::new("fixed", Categorical::new(["only"])),
        ]);
        let mut rng = Rng::new(1);
        let encoding = Encoding::new(&space, &mut rng);
        let rows: Vec<Vec<f32>> =
            (0..1000).map(|_| encoding.encode(&space, &space.sample(&mut rng))).collect();
        for feature in 0..encoding.len() {
            let mean = rows.iter().map(|row| row[feature]).sum::<f32>() / 1000.0;
            assert!(mean.abs() < 0.2, "{feature}: {mean}");
            assert!(rows.iter().all(|row| row[feature].abs() <= FURTHEST));
        }
    }

    #[test]
    fn memories_forget_the_oldest() {
        let mut memory = Memory::new(3);
        (0..5).for_each(|item| memory.push(item));
        memory.items.sort_unstable();
        assert_eq!(memory.items, [2, 3, 4]);
        assert_eq!(memory.sample(8, &mut Rng::new(1)).len(), 8);
        assert!(Memory::<u8>::new(3).sample(2, &mut Rng::new(1)).is_empty());
    }
}
