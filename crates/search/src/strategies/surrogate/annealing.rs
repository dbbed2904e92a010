//! Simulated annealing over a model (AutoTVM section 4), with parallel chains.

use std::collections::HashMap;

use tensorwright_space::{Point, Rng, SearchSpace};

/// The number of parallel chains.
const CHAINS: usize = 128;

/// The number of values to try for a parameter until a chain's next point is legal.
const MOST_DRAWS: usize = 4;

/// The chains. They continue from the last search, as in AutoTVM.
#[derive(Debug, Clone, Default)]
pub(super) struct Annealing {
    chains: Vec<Point>,
}

impl Annealing {
    /// Runs the chains for about `evaluations` points, and returns all distinct points with their
    /// scores, highest first. `score` maps rows of features to scores.
    pub(super) fn search(
        &mut self,
        space: &SearchSpace,
        rng: &mut Rng,
        evaluations: usize,
        mut score: impl FnMut(&[f32]) -> Vec<f32>,
    ) -> Vec<(Point, f32)> {
        let missing = CHAINS.saturating_sub(self.chains.len());
        self.chains.extend((0..missing).map_while(|_| space.sample_legal(rng)));
        let mut scores = score(&features(space, &self.chains));
        let mut seen: HashMap<Point, f32> = HashMap::new();
        seen.extend(self.chains.iter().cloned().zip(scores.iter().copied()));
        let rounds = evaluations / CHAINS;
        for round in 0..rounds {
            let next: Vec<Point> =
                self.chains.iter().map(|point| mutate(space, point, rng)).collect();
            let next_scores = score(&features(space, &next));
            let temperature = 1.0 - round as f32 / rounds as f32;
            for (chain, (point, new)) in next.into_iter().zip(next_scores).enumerate() {
                let climb = (new - scores[chain]) / temperature;
                let accepted = rng.chance(f64::from(libm::expf(climb.min(0.0))));
                seen.insert(point.clone(), new);
                if accepted {
                    self.chains[chain] = point;
                    scores[chain] = new;
                }
            }
        }
        let mut seen: Vec<(Point, f32)> = seen.into_iter().collect();
        seen.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        seen
    }
}

fn features(space: &SearchSpace, points: &[Point]) -> Vec<f32> {
    points.iter().flat_map(|point| space.features(point)).collect()
}

/// Changes the value of one parameter; returns the point itself if no sampled value is legal.
fn mutate(space: &SearchSpace, point: &Point, rng: &mut Rng) -> Point {
    for _ in 0..MOST_DRAWS {
        let place = rng.index(space.parameters().len());
        let count = space.parameters().get(place).map_or(1, |parameter| parameter.count());
        let next = point.with(place, rng.below(u64::from(count)) as u32);
        if next != *point && space.is_legal(&next) {
            return next;
        }
    }
    point.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_space::Parameter;
    use tensorwright_space::parameter::Discrete;

    #[test]
    fn chains_find_what_a_model_likes() {
        let parameter = |name| Parameter::new(name, Discrete::new(0..100));
        let space = SearchSpace::new(["a", "b", "c"].map(parameter).to_vec());
        let mut rng = Rng::new(1);
        // Features are logarithms: the maximum is at the last value of each parameter.
        let score = |rows: &[f32]| rows.chunks(3).map(|row| row.iter().sum()).collect();
        let found = Annealing::default().search(&space, &mut rng, 40_000, score);
        let best = &found[0].0;
        assert!(best.ranks().iter().all(|rank| *rank > 90), "{best}");
        assert!(found.len() > 1000);
    }
}
