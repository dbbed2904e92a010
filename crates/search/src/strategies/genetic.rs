//! Genetic search of Tensor Comprehensions, section 6.2.
//!
//! "Each new candidate is bred through three parent uniform cross-over and also undergoes mutation
//! with a low probability": three parents are chosen with chances in proportion to their fitness,
//! each parameter of the child comes from one of them, and a few parameters get random values. The
//! fitness is inversely proportional to the running time; a generation has 100 candidates (section 7).
//!
//! Where the section is silent:
//! - The mutation rate is 5 % per parameter.
//! - The ten best of all that was seen remain parents, so that a good candidate is not lost with its
//!   generation; they are not measured again.
//! - A generation ends when all its candidates went out. Those that come back later belong to the
//!   next one; nobody waits for them.

use std::sync::Arc;

use tensorwright_space::{Point, Rng, SearchSpace};

use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};

/// The registry's line.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("genetic", "Tensor Comprehensions, section 6.2", |space, settings| {
        Box::new(Genetic::new(space, settings))
    });

/// Candidates of a generation.
const POPULATION: usize = 100;

/// The chance of a parameter to get a random value.
const MUTATION_RATE: f64 = 0.05;

/// Candidates that stay parents.
const ELITES: usize = 10;

/// Children that are bred before a random point is taken instead of one that is new.
const MOST_BIRTHS: usize = 50;

/// Genetic search.
#[derive(Debug)]
struct Genetic {
    base: Base,
    parents: Vec<Candidate>,
    /// What came back since the parents were chosen.
    generation: Vec<Candidate>,
    /// How many went out since then.
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

    /// What came back becomes the parents, together with the best of the parents before.
    fn next_generation(&mut self) {
        let by_fitness = |a: &Candidate, b: &Candidate| b.fitness.total_cmp(&a.fitness);
        self.parents.sort_by(by_fitness);
        self.parents.truncate(ELITES);
        self.parents.append(&mut self.generation);
        self.parents.retain(|parent| parent.fitness > 0.0);
        self.born = 0;
    }

    /// A new legal child; `None` in the first generation, and if all children are known or illegal.
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
