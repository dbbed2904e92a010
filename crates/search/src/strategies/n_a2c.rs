//! N-A2C: neighbourhood actor advantage critic, section 3.4 and algorithm 2 of Zhang et al. 2019.
//!
//! Episodes of T steps start at the best state so far. With probability tau a step follows the
//! actor's policy, otherwise it is random; new states on the way are collected and tested. The
//! rewards go to a memory of fixed size, from which actor and critic learn. Section 4 has T = 3.
//!
//! Beyond the paper:
//! - Its actions double one factor and halve another (equation 6); here they are the directions of
//!   the space. For powers of two the first kind of them is the paper's.
//! - T has "a soft start, which means starting with a large value", and increases "after a
//!   long time exploration within the same starting points", without numbers: see [`Length`].
//! - The paper gives no tau and no sizes of batch, memory and networks: see the constants here and
//!   in `actor_critic`.
//! - Episodes lead through legal states only, including known ones. A batch ends after a number of
//!   results; meanwhile episodes continue from the previous centre: nobody waits.

mod actor_critic;
mod length;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use super::learned::{Encoding, news, open_directions};
use crate::base::{Base, propose, untiled};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};
use actor_critic::{ActorCritic, Transition};
use length::Length;

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("n-a2c", "Zhang et al. 2019, section 3.4", |space, settings| {
        Box::new(NA2c::new(space, settings))
    });

/// The probability to follow the policy. The paper gives no value. On the landscape of
/// `examples/strategy_time.rs` less is better, down to zero (of 0, 0.4, 0.7 and 0.9): a few hundred
/// trials teach the actor little. One half keeps the character of the method.
const TAU: f64 = 0.5;

/// The number of results between trainings of the networks and moves of the centre.
const BATCH: usize = 8;

/// The number of episodes without a new state before a random one is proposed.
const MOST_EPISODES: usize = 32;

/// The number of actions to try for a legal next state.
const MOST_ACTIONS: usize = 8;

/// N-A2C.
#[derive(Debug)]
struct NA2c {
    base: Base,
    encoding: Encoding,
    learner: ActorCritic,
    /// Collected states that were not proposed yet.
    collected: VecDeque<Point>,
    /// The steps that led to states with unknown results.
    steps: HashMap<Point, Vec<(Point, usize)>>,
    /// The start of episodes: the best state at the end of the last batch.
    center: Point,
    length: Length,
    /// The number of results.
    results: usize,
}

impl NA2c {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        let mut base = Base::new(space, settings);
        let encoding = Encoding::new(&base.space, &mut base.rng);
        let learner = ActorCritic::new(encoding.len(), base.space.directions(), base.rng.fork());
        let center = untiled(&base.space);
        Self {
            base,
            encoding,
            learner,
            collected: VecDeque::from([center.clone()]),
            steps: HashMap::new(),
            center,
            length: Length::default(),
            results: 0,
        }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            // A given start replaces the untiled state.
            if self.base.visited.len() == 1 {
                self.collected.clear();
                self.center = point.clone();
            }
            return Some(point);
        }
        for _ in 0..MOST_EPISODES {
            while let Some(point) = self.collected.pop_front() {
                if self.base.claim(&point) {
                    return Some(point);
                }
            }
            self.episode();
        }
        self.base.random()
    }

    /// Runs T steps from the centre.
    fn episode(&mut self) {
        let mut state = self.center.clone();
        for _ in 0..self.length.steps() {
            let Some((action, next)) = self.act(&state) else { break };
            match self.base.visited.fitness(&next) {
                // Known states are learned from without a test.
                Some(value) => self.learn(&state, action, &next, value),
                None => {
                    self.steps.entry(next.clone()).or_default().push((state, action));
                    self.collected.push_back(next.clone());
                }
            }
            state = next;
        }
    }

    /// An action, and the legal state that it leads to.
    fn act(&mut self, state: &Point) -> Option<(usize, Point)> {
        let Base { space, rng, .. } = &mut self.base;
        let mut actions = open_directions(space, state);
        let guided = rng.chance(TAU).then(|| self.encoding.encode(space, state));
        for _ in 0..MOST_ACTIONS.min(actions.len()) {
            let place = match &guided {
                Some(encoded) => self.learner.choose(encoded, &actions, rng),
                None => rng.index(actions.len()),
            };
            let action = actions.swap_remove(place);
            let next = space.step(state, action).filter(|next| space.is_legal(next));
            if let Some(next) = next {
                return Some((action, next));
            }
        }
        None
    }

    /// Stores a step with known reward.
    fn learn(&mut self, state: &Point, action: usize, next: &Point, value: f64) {
        self.learner.remember(Transition {
            from: self.encoding.encode(&self.base.space, state),
            actions: open_directions(&self.base.space, state),
            action,
            to: self.encoding.encode(&self.base.space, next),
            value,
        });
    }

    /// Ends a batch: trains the networks, and moves the centre to the best state.
    fn end_batch(&mut self) {
        let Some((best, value)) = self.base.visited.best() else { return };
        self.learner.train(*value);
        let moved = *best != self.center;
        if moved {
            self.center = best.clone();
        }
        self.length.end_batch(moved);
    }
}

impl SearchStrategy for NA2c {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            let point = &observation.point;
            let steps = self.steps.remove(point).unwrap_or_default();
            let Some(value) = news(&mut self.base, observation) else { continue };
            for (state, action) in steps {
                self.learn(&state, action, point, value);
            }
            self.results += 1;
            if self.results.is_multiple_of(BATCH) {
                self.end_batch();
            }
        }
    }
}
