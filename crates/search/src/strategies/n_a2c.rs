//! N-A2C: neighbourhood actor advantage critic, section 3.4 and algorithm 2 of Zhang et al. 2019.
//!
//! Episodes of T steps start at the best state so far. With probability tau a step follows the actor's
//! policy, otherwise it is random; new states on the way are collected and tested. What they yield
//! goes to a memory of fixed size, from which actor and critic learn. Section 4 has T = 3.
//!
//! Beyond the paper:
//! - Its actions double one factor and halve another (equation 6); here they are the directions of
//!   the space. For powers of two the first kind of them is the paper's.
//! - T has "a soft start, which means starting with a large value", and increases "after a long time
//!   exploration within the same starting points", without figures: see [`Length`].
//! - The paper gives no tau and no sizes of batch, memory and networks: see the constants here and in
//!   `actor_critic`.
//! - Episodes lead through legal states only, known ones included. A batch ends when so many results
//!   came back; episodes meanwhile go on from the centre before: nobody waits.

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

/// The registry's line.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("n-a2c", "Zhang et al. 2019, section 3.4", |space, settings| {
        Box::new(NA2c::new(space, settings))
    });

/// How often the policy is followed. The paper does not say. On the landscape of
/// `examples/strategy_time.rs` less is better, down to never (of 0, 0.4, 0.7 and 0.9): a few hundred
/// trials teach the actor little. Half of the steps keep the method what it is.
const TAU: f64 = 0.5;

/// Results after which the networks are trained and the centre is moved.
const BATCH: usize = 8;

/// Episodes without a new state before a random one is taken.
const MOST_EPISODES: usize = 32;

/// Actions that are tried to get to a legal state.
const MOST_ACTIONS: usize = 8;

/// N-A2C.
#[derive(Debug)]
struct NA2c {
    base: Base,
    encoding: Encoding,
    learner: ActorCritic,
    /// States that episodes found and that have not gone out.
    collected: VecDeque<Point>,
    /// The steps that led to states whose result is not known.
    steps: HashMap<Point, Vec<(Point, usize)>>,
    /// Where episodes start: the best state when the last batch ended.
    center: Point,
    length: Length,
    /// Results that came back.
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
            // A start that was given takes the place of the state without tiles.
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

    /// T steps from the centre.
    fn episode(&mut self) {
        let mut state = self.center.clone();
        for _ in 0..self.length.steps() {
            let Some((action, next)) = self.act(&state) else { break };
            match self.base.visited.fitness(&next) {
                // What is known need not be tested to be learnt from.
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

    /// Remembers a step whose reward is known.
    fn learn(&mut self, state: &Point, action: usize, next: &Point, value: f64) {
        self.learner.remember(Transition {
            from: self.encoding.encode(&self.base.space, state),
            actions: open_directions(&self.base.space, state),
            action,
            to: self.encoding.encode(&self.base.space, next),
            value,
        });
    }

    /// A batch has been tested: the networks learn, and the centre moves to the best state.
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
