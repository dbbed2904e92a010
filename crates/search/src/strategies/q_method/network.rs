//! The Q-network X and its copy Y (FlexTensor section 5.1, "Machine Learning Method").

use tensorwright_learn::{AdaDelta, Mlp, Tape};
use tensorwright_space::Rng;

use crate::strategies::learned::Memory;

/// The width of the hidden layers. The paper gives only their number; the authors' program has 64.
const WIDTH: usize = 64;

/// The discount factor: the paper's alpha, 0.9 in the authors' program.
const ALPHA: f32 = 0.9;

/// The batches per training, and moves per batch. The authors' program uses twenty epochs over all
/// moves, in batches of 32; with hundreds of moves that takes longer than the trials themselves.
const BATCHES: (usize, usize) = (8, 32);

/// The size of the replay memory in moves (the authors' program: a thousand).
const MEMORY: usize = 1000;

/// Rewards are clipped here: a point that is a hundred times faster than a very bad one says no
/// more about directions than one that is six times faster.
const HIGHEST_REWARD: f32 = 5.0;

/// The maximum gradient norm of a batch.
const LONGEST: f32 = 10.0;

/// A move: the paper's tuple (p, e, reward), with the direction.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The features of p.
    pub(super) from: Vec<f32>,
    /// The direction of the move.
    pub(super) direction: usize,
    /// The reward.
    pub(super) reward: f32,
    /// The features of e.
    pub(super) to: Vec<f32>,
    /// The directions available at e.
    pub(super) onward: Vec<usize>,
}

/// The network X, its copy Y, and their replay memory.
#[derive(Debug)]
pub(super) struct QNetwork {
    x: Mlp,
    y: Mlp,
    optimiser: AdaDelta,
    memory: Memory<Step>,
    alpha: f32,
    rng: Rng,
    tapes: (Tape, Tape),
}

impl QNetwork {
    /// Four fully connected layers from the features of a point to a value per direction.
    pub(super) fn new(features: usize, directions: usize, mut rng: Rng) -> Self {
        let x = Mlp::new(&[features, WIDTH, WIDTH, WIDTH, directions], rng.next_u64());
        Self {
            y: x.clone(),
            optimiser: AdaDelta::default(),
            memory: Memory::new(MEMORY),
            alpha: ALPHA,
            rng,
            tapes: (x.tape(), x.tape()),
            x,
        }
    }

    /// The Q-values of all directions at a point.
    pub(super) fn values(&mut self, state: &[f32]) -> &[f32] {
        self.x.forward(state, &mut self.tapes.0)
    }

    pub(super) fn remember(&mut self, mut step: Step) {
        step.reward = step.reward.min(HIGHEST_REWARD);
        self.memory.push(step);
    }

    /// Trains X towards `alpha max Y(e) + reward`, then copies it to Y.
    ///
    /// The paper writes the loss as `(X(e) - target)^2`. The value of a move belongs to its
    /// starting point, so here, as in reference 36 of the paper, it is `(X(p)[direction] - target)^2`. The
    /// maximum is over the directions available at e; the others are never trained.
    pub(super) fn train(&mut self) {
        let directions = self.x.outputs();
        for _ in 0..BATCHES.0 {
            let steps = self.memory.sample(BATCHES.1, &mut self.rng);
            let from: Vec<f32> = steps.iter().flat_map(|step| &step.from).copied().collect();
            let to: Vec<f32> = steps.iter().flat_map(|step| &step.to).copied().collect();
            let promises = self.y.forward(&to, &mut self.tapes.1);
            let values = self.x.forward(&from, &mut self.tapes.0);
            let mut gradient = vec![0.0; values.len()];
            let scale = 2.0 / steps.len().max(1) as f32;
            for (row, step) in steps.iter().enumerate() {
                let promise = |direction: &usize| promises[row * directions + direction];
                let best = step.onward.iter().map(promise).reduce(f32::max).unwrap_or(0.0);
                let target = self.alpha * best + step.reward;
                let place = row * directions + step.direction;
                gradient[place] = scale * (values[place] - target);
            }
            self.x.backward(&gradient, &mut self.tapes.0);
            self.tapes.0.clip(LONGEST);
            self.x.descend(&self.tapes.0, &mut self.optimiser);
        }
        self.y.copy_from(&self.x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two states and two directions: from 0, direction 1 leads to 1 with reward 1; all other
    /// rewards are 0.
    #[test]
    fn values_become_those_of_the_bellman_equation() {
        let mut network = QNetwork { alpha: 0.5, ..QNetwork::new(1, 2, Rng::new(3)) };
        for (from, direction, reward, to) in
            [(-1.0, 0, 0.0, -1.0), (-1.0, 1, 1.0, 1.0), (1.0, 0, 0.0, -1.0), (1.0, 1, 0.0, 1.0)]
        {
            let (from, to) = (vec![from], vec![to]);
            network.remember(Step { from, direction, reward, to, onward: vec![0, 1] });
        }
        (0..150).for_each(|_| network.train());
        // AdaDelta's steps do not shrink: values oscillate.
        let mut means = [0.0; 4];
        for _ in 0..100 {
            network.train();
            let states = [network.values(&[-1.0]).to_vec(), network.values(&[1.0]).to_vec()];
            means.iter_mut().zip(states.concat()).for_each(|(mean, value)| *mean += value / 100.0);
        }
        // Q(0,1) = 1 + Q(1,0)/2, Q(1,0) = Q(0,1)/2: 4/3 and 2/3; Q(0,0) = 2/3, Q(1,1) = 1/3.
        for (mean, expected) in means.into_iter().zip([2.0, 4.0, 2.0, 1.0]) {
            assert!((mean - expected / 3.0).abs() < 0.1, "{means:?}");
        }
    }
}
