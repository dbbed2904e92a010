//! Annealed choice of starting points (FlexTensor section 5.1, "Heuristic Method").
//!
//! The P- and the Q-method share it.

use tensorwright_space::{Point, Rng};

/// How strongly better starting points are preferred. The paper gives no value. With 40, a point
/// that is 5 % slower than the best is chosen once per seven choices of the best one. Of 8, 20, 40
/// and 80, the last two were best for both methods on the landscape of `examples/strategy_time.rs`;
/// with 8, the many poor points of H outweigh the few good ones.
pub(super) const GAMMA: f64 = 40.0;

/// The number of known points before the first choice, random ones unless others are given: H must
/// contain something to choose from. The paper gives no value.
pub(super) const WARM_UP: usize = 16;

/// The set H of points that have been evaluated, each with its performance value E.
///
/// It contains only measured points: neighbours of a point that fails to build mostly fail, too.
#[derive(Debug, Clone, Default)]
pub(super) struct Evaluated {
    points: Vec<(Point, f64)>,
    /// E*: the best value so far.
    best: f64,
}

impl Evaluated {
    pub(super) fn insert(&mut self, point: &Point, value: f64) {
        if value > 0.0 {
            self.points.push((point.clone(), value));
            self.best = self.best.max(value);
        }
    }

    /// The index of a starting point, chosen with a probability proportional to `exp(-gamma (E* -
    /// E_p) / E*)`.
    ///
    /// The paper calls that expression the probability itself, although it does not sum to one.
    /// Proportionality keeps its meaning: the closer to the best, the likelier.
    pub(super) fn choose(&self, gamma: f64, rng: &mut Rng) -> Option<usize> {
        let weight =
            |(_, value): &(Point, f64)| libm::exp(-gamma * (self.best - value) / self.best);
        let weights: Vec<f64> = self.points.iter().map(weight).collect();
        (!weights.is_empty()).then(|| rng.weighted(&weights))
    }

    /// A point and its value.
    pub(super) fn get(&self, place: usize) -> &(Point, f64) {
        &self.points[place]
    }

    /// Removes a point whose neighbours are all known.
    pub(super) fn retire(&mut self, place: usize) -> (Point, f64) {
        self.points.swap_remove(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_chosen_as_the_formula_says() {
        let mut evaluated = Evaluated::default();
        for (rank, value) in [(0, 10.0), (1, 9.0), (2, 5.0), (3, 0.0)] {
            evaluated.insert(&Point::new([rank]), value);
        }
        let (gamma, draws, mut counts) = (4.0, 60_000, [0.0; 4]);
        let mut rng = Rng::new(5);
        for _ in 0..draws {
            let place = evaluated.choose(gamma, &mut rng).unwrap();
            counts[evaluated.get(place).0.rank(0) as usize] += 1.0;
        }
        let weights = [1.0, (-gamma * 0.1_f64).exp(), (-gamma * 0.5_f64).exp(), 0.0];
        let total: f64 = weights.iter().sum();
        for (count, weight) in counts.iter().zip(weights) {
            let (share, expected) = (count / f64::from(draws), weight / total);
            assert!((share - expected).abs() < 0.01, "{share} {expected}");
        }
        assert_eq!(Evaluated::default().choose(gamma, &mut rng), None);
    }
}
