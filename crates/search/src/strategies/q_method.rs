//! FlexTensor's Q-method (section 5.1): Q-learning of moves from annealed starting points.
//!
//! Unspecified in the paper:
//! - `EPSILON` of the moves are random, otherwise an untrained network would decide alone. The
//!   values, like those of the network, are those of the authors' published program.
//! - Directions that lead to known or illegal points are skipped for the next best.
//! - Proposals use the current starting points and network; nobody waits for pending points.

mod network;

use std::collections::HashMap;
use std::sync::Arc;

use tensorwright_space::{Point, SearchSpace};

use super::annealed::{Evaluated, GAMMA, WARM_UP};
use super::learned::{Encoding, news, open_directions};
use crate::base::{Base, propose};
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};
use network::{QNetwork, Step};

/// The registry entry.
pub(crate) const STRATEGY: Strategy =
    Strategy::new("q-method", "FlexTensor, section 5.1, Q-learning", |space, settings| {
        Box::new(QMethod::new(space, settings))
    });

/// The probability of random moves: initial value, decrement per move, and minimum.
const EPSILON: (f64, f64, f64) = (0.8, 0.01, 0.1);

/// "The training process happens periodically (every five trials)".
const TRAIN_EVERY: usize = 5;

/// The Q-method.
#[derive(Debug)]
struct QMethod {
    base: Base,
    evaluated: Evaluated,
    encoding: Encoding,
    network: QNetwork,
    /// The moves that led to the pending points.
    moves: HashMap<Point, Move>,
    /// The numbers of moves made, and of moves with known results.
    made: usize,
    ended: usize,
}

/// A move whose result is pending.
#[derive(Debug, Clone)]
struct Move {
    from: Point,
    /// The performance of its starting point.
    value: f64,
    direction: usize,
}

impl QMethod {
    fn new(space: Arc<SearchSpace>, settings: &StrategySettings) -> Self {
        let mut base = Base::new(space, settings);
        let encoding = Encoding::new(&base.space, &mut base.rng);
        let network = QNetwork::new(encoding.len(), base.space.directions(), base.rng.fork());
        Self {
            base,
            evaluated: Evaluated::default(),
            encoding,
            network,
            moves: HashMap::new(),
            made: 0,
            ended: 0,
        }
    }

    fn point(&mut self) -> Option<Point> {
        if let Some(point) = self.base.start() {
            return Some(point);
        }
        while self.base.visited.len() >= WARM_UP {
            let Some(place) = self.evaluated.choose(GAMMA, &mut self.base.rng) else { break };
            if let Some(end) = self.walk(place) {
                return Some(end);
            }
            self.evaluated.retire(place);
        }
        self.base.random()
    }

    /// The end of a move from a starting point along the direction with the highest Q-value, or a
    /// random one; `None` if all its neighbours are known or illegal.
    fn walk(&mut self, place: usize) -> Option<Point> {
        let (from, value) = self.evaluated.get(place).clone();
        let mut directions = open_directions(&self.base.space, &from);
        let (first, decay, least) = EPSILON;
        let epsilon = (first * libm::exp(-decay * self.made as f64)).max(least);
        if self.base.rng.chance(epsilon) {
            self.base.rng.shuffle(&mut directions);
        } else {
            let values = self.network.values(&self.encoding.encode(&self.base.space, &from));
            directions.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        }
        for direction in directions {
            let Some(end) = self.base.space.step(&from, direction) else { continue };
            if self.base.claim(&end) {
                self.made += 1;
                self.moves.insert(end.clone(), Move { from, value, direction });
                return Some(end);
            }
        }
        None
    }

    /// Stores a move with a known result: the tuple (p, e, (E_e - E_p) / E_p).
    fn learn(&mut self, made: &Move, end: &Point, value: f64) {
        self.network.remember(Step {
            from: self.encoding.encode(&self.base.space, &made.from),
            direction: made.direction,
            reward: ((value - made.value) / made.value) as f32,
            to: self.encoding.encode(&self.base.space, end),
            onward: open_directions(&self.base.space, end),
        });
        self.ended += 1;
        if self.ended.is_multiple_of(TRAIN_EVERY) {
            self.network.train();
        }
    }
}

impl SearchStrategy for QMethod {
    fn propose(&mut self, at_most: usize) -> Proposal {
        propose(at_most, || self.point())
    }

    fn observe(&mut self, observations: &[Observation]) {
        for observation in observations {
            let point = &observation.point;
            let made = self.moves.remove(point);
            let Some(value) = news(&mut self.base, observation) else { continue };
            self.evaluated.insert(point, value);
            if let Some(made) = made {
                self.learn(&made, point, value);
            }
        }
    }
}
