//! Genetic search of Tensor Comprehensions, section 6.2.
//!
//! "Each new candidate is bred through three parent uniform cross-over and also undergoes mutation
//! with a low probability": three parents are selected with probabilities proportional to their
//! fitness, each parameter of the child comes from one of them, and a few parameters get random
//! values. The fitness is inversely proportional to the running time; a generation has 100
//! candidates (section 7).
//!
//! Unspecified in the section:
//! - The mutation rate is 5 % per parameter.
//! - The ten best points so far remain parents, so that a good candidate is not lost with its
//!   generation; they are not measured again.
//! - A generation ends when all its candidates were proposed. Those that come back later belong
//!   to the next one; nobody waits for them.

use std::sync::Arc;

use tensorwright_space::{Point, Rng, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("genetic", "Tensor Comprehensions, section 6.2", |space, settings| {
        Box::new(Genetic::new(space, settings))
    });

/// The size of a generation.
const POPULATION: usize = 100;

/// The mutation probability of a parameter.
const MUTATION_RATE: f64 = 0.05;

/// The number of elites that stay parents.
const ELITES: usize = 10;

/// The number of children to try before a random point is proposed instead.
const MOST_BIRTHS: usize = 50;

/// Genetic search.
#[derive(Debug)]
struct Genetic {
    base: Base,
    parents: Vec<Candidate>,
    /// The observations since the parents were chosen.
    generation: Vec<Candidate>,
    /// The number of proposals since then.
    born: usize,
}

#[derive(Debug, Clone)]
struct Candidate {
    point: Point,
    fitness: f64,
}

impl Genetic {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        Self {
            base: Base::new(space, settings),
            parents: Vec::new(),
            generation: Vec::new(),
            born: 0,
        }
    }

    fn point(&mut self) -> Option<Point> {
        if self.born.max(self.generation.len()) >= POPULATION {
            self.next_generation();
        }
        self.born += 1;
        let point = self.base.start().or_else(|| self.child());
        point.or_else(|| self.base.random())
    }

    /// Selects the next parents: the observations, and the best of the previous parents.
    fn next_generation(&mut self) {
        let by_fitness = |a: &Candidate, b: &Candidate| b.fitness.total_cmp(&a.fitness);
        self.parents.sort_by(by_fitness);
        self.parents.truncate(ELITES);
        self.parents.append(&mut self.generation);
        self.parents.retain(|parent| parent.fitness > 0.0);
        self.born = 0;
    }

    /// A new legal child; `None` in the first generation, or if all children are known or illegal.
    fn child(&mut self) -> Option<Point> {
        if self.parents.is_empty() {
            return None;
        }
        let chances: Vec<f64> = self.parents.iter().map(|parent| parent.fitness).collect();
        for _ in 0..MOST_BIRTHS {
            let child = breed(&self.parents, &chances, &self.base.space, &mut self.base.rng);
            if self.base.claim(&child) {
                return Some(child);
            }
        }
        None
    }
}

/// Three-parent uniform crossover, then mutation.
fn breed(parents: &[Candidate], chances: &[f64], space: &SearchSpace, rng: &mut Rng) -> Point {
    let three = [(); 3].map(|()| &parents[rng.weighted(chances)].point);
    let mut gene = |place: usize, count: u32| {
        if rng.chance(MUTATION_RATE) {
            rng.below(u64::from(count)) as u32
        } else {
            three[rng.index(three.len())].rank(place)
        }
    };
    let genes = space.parameters().iter().enumerate();
    Point::new(genes.map(|(place, p)| gene(place, p.count())).collect::<Box<[u32]>>())
}

impl SearchStrategy for Genetic {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            let Some(fitness) = self.base.observe(observation) else { continue };
            self.generation.push(Candidate { point: observation.point.clone(), fitness });
        }
    }
}
