//! The actor and critic networks, and their replay memory.

use tensorwright_learn::{Adam, Mlp, Tape, softmax};
use tensorwright_space::Rng;

use crate::strategies::learned::Memory;

/// The width of the two hidden layers of both networks.
const WIDTH: usize = 64;

/// The size of the replay memory in steps.
const MEMORY: usize = 512;

/// The number of batches per training, and steps per batch.
const BATCHES: (usize, usize) = (4, 32);

/// The discount factor. 0.7 looks about three steps ahead, the length of an episode.
const DISCOUNT: f32 = 0.7;

/// The learning rate of both networks. The paper names no optimiser.
const RATE: f32 = 2e-3;

/// The weight of the entropy bonus.
const ENTROPY: f32 = 0.01;

/// The maximum gradient norm of a batch.
const LONGEST: f32 = 5.0;

/// A step of an episode.
#[derive(Debug, Clone)]
pub(super) struct Transition {
    /// The features of s.
    pub(super) from: Vec<f32>,
    /// The actions available at s.
    pub(super) actions: Vec<usize>,
    /// a.
    pub(super) action: usize,
    /// The features of s'.
    pub(super) to: Vec<f32>,
    /// The performance of s'; zero if it was not measured.
    pub(super) value: f64,
}

/// The two networks.
#[derive(Debug)]
pub(super) struct ActorCritic {
    actor: Mlp,
    critic: Mlp,
    optimisers: (Adam, Adam),
    memory: Memory<Transition>,
    rng: Rng,
    tapes: (Tape, Tape),
}

impl ActorCritic {
    pub(super) fn new(features: usize, directions: usize, mut rng: Rng) -> Self {
        let actor = Mlp::new(&[features, WIDTH, WIDTH, directions], rng.next_u64());
        let critic = Mlp::new(&[features, WIDTH, WIDTH, 1], rng.next_u64());
        Self {
            optimisers: (Adam::with_rate(RATE), Adam::with_rate(RATE)),
            memory: Memory::new(MEMORY),
            rng,
            tapes: (actor.tape(), critic.tape()),
            actor,
            critic,
        }
    }

    /// The index of an action among the available ones, sampled from the policy.
    pub(super) fn choose(&mut self, state: &[f32], actions: &[usize], rng: &mut Rng) -> usize {
        let logits = self.actor.forward(state, &mut self.tapes.0);
        let mut policy: Vec<f32> = actions.iter().map(|action| logits[*action]).collect();
        softmax(&mut policy);
        let weights: Vec<f64> = policy.iter().map(|share| f64::from(*share)).collect();
        rng.weighted(&weights)
    }

    pub(super) fn remember(&mut self, transition: Transition) {
        self.memory.push(transition);
    }

    /// Trains both networks on transitions sampled from memory. Rewards are relative to the best
    /// performance so far: equation 8 itself is in calls per second, of any magnitude.
    pub(super) fn train(&mut self, best: f64) {
        for _ in 0..BATCHES.0 {
            let steps = self.memory.sample(BATCHES.1, &mut self.rng);
            if steps.is_empty() {
                return;
            }
            let from: Vec<f32> = steps.iter().flat_map(|step| &step.from).copied().collect();
            let to: Vec<f32> = steps.iter().flat_map(|step| &step.to).copied().collect();
            let critic_tape = &mut self.tapes.1;
            let after = self.critic.forward(&to, critic_tape).to_vec();
            let before = self.critic.forward(&from, critic_tape);
            let advantages: Vec<f32> = (0..steps.len())
                .map(|row| {
                    let reward = (steps[row].value / best) as f32;
                    reward + DISCOUNT * after[row] - before[row]
                })
                .collect();

            let scale = 1.0 / steps.len() as f32;
            let slopes: Vec<f32> = advantages.iter().map(|a| -2.0 * scale * a).collect();
            self.critic.backward(&slopes, critic_tape);
            critic_tape.clip(LONGEST);
            self.critic.descend(critic_tape, &mut self.optimisers.1);

            let actor_tape = &mut self.tapes.0;
            let logits = self.actor.forward(&from, actor_tape);
            let slopes = policy_slopes(logits, &steps, &advantages, scale);
            self.actor.backward(&slopes, actor_tape);
            actor_tape.clip(LONGEST);
            self.actor.descend(actor_tape, &mut self.optimisers.0);
        }
    }
}

/// The gradient of `-(advantage ln pi(a) + ENTROPY H(pi))` by the logits; zero for unavailable
/// actions.
fn policy_slopes(
    logits: &[f32],
    steps: &[&Transition],
    advantages: &[f32],
    scale: f32,
) -> Vec<f32> {
    let mut slopes = vec![0.0; logits.len()];
    let width = logits.len() / steps.len().max(1);
    for (row, (step, advantage)) in steps.iter().zip(advantages).enumerate() {
        let logit = |action: &usize| logits[row * width + action];
        let mut policy: Vec<f32> = step.actions.iter().map(logit).collect();
        softmax(&mut policy);
        let log = |share: f32| libm::logf(share.max(1e-12));
        let entropy: f32 = policy.iter().map(|share| -share * log(*share)).sum();
        for (action, share) in step.actions.iter().zip(&policy) {
            let taken = f32::from(u8::from(*action == step.action));
            let towards = advantage * (taken - share);
            let spread = ENTROPY * share * (log(*share) + entropy);
            slopes[row * width + action] = scale * (spread - towards);
        }
    }
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradient matches finite differences of the loss.
    #[test]
    fn slopes_are_those_of_the_loss() {
        let actions = vec![0, 2, 3];
        let step = Transition { from: vec![], actions, action: 2, to: vec![], value: 0.0 };
        let advantage = 0.7;
        let loss = |logits: &[f32]| {
            let mut policy: Vec<f32> = step.actions.iter().map(|a| logits[*a]).collect();
            softmax(&mut policy);
            let entropy: f32 = policy.iter().map(|p| -p * p.ln()).sum();
            -(advantage * policy[1].ln() + ENTROPY * entropy)
        };
        let logits = [0.3, 9.0, -0.2, 1.1];
        let slopes = policy_slopes(&logits, &[&step], &[advantage], 1.0);
        assert_eq!(slopes[1], 0.0);
        for place in [0, 2, 3] {
            let (mut above, mut below) = (logits, logits);
            above[place] += 1e-2;
            below[place] -= 1e-2;
            let difference = (loss(&above) - loss(&below)) / 2e-2;
            assert!((slopes[place] - difference).abs() < 1e-3, "{place}: {slopes:?} {difference}");
        }
    }

    /// One state and two actions, one of which has a reward.
    #[test]
    fn the_policy_learns_what_pays() {
        let mut learner = ActorCritic::new(1, 2, Rng::new(1));
        for (action, value) in [(0, 1.0), (1, 10.0)] {
            let (from, to) = (vec![0.5], vec![-0.5]);
            learner.remember(Transition { from, actions: vec![0, 1], action, to, value });
        }
        (0..60).for_each(|_| learner.train(10.0));
        let mut rng = Rng::new(2);
        let chosen = (0..100).filter(|_| learner.choose(&[0.5], &[0, 1], &mut rng) == 1).count();
        assert!(chosen > 80, "{chosen}");
    }
}
