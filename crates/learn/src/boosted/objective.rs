//! Loss functions of boosting, with first and second derivatives.

use tensorwright_random::SplitMix;

/// The loss function of boosting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// The squared error: predictions are values.
    Squared,
    /// The pairwise ranking loss, as XGBoost's `rank:pairwise` that AutoTVM uses: predictions are
    /// scores, and the higher target should have the higher score. The loss of a pair is `ln(1 +
    /// exp(worse - better))`.
    Pairwise {
        /// The number of other rows that each row is compared with, sampled per tree.
        opponents: usize,
    },
}

/// A lower bound on second derivatives, which vanish for settled pairs.
const LEAST_CURVATURE: f64 = 1e-6;

impl Objective {
    /// The initial score of every row.
    pub(super) fn base(self, targets: &[f32]) -> f32 {
        match self {
            Self::Squared => {
                let sum: f64 = targets.iter().map(|target| f64::from(*target)).sum();
                (sum / targets.len().max(1) as f64) as f32
            }
            Self::Pairwise { .. } => 0.0,
        }
    }

    /// The first and second derivatives of the loss by each score.
    pub(super) fn derive(
        self,
        scores: &[f32],
        targets: &[f32],
        random: &mut SplitMix,
        derivatives: &mut [[f64; 2]],
    ) {
        match self {
            Self::Squared => {
                for ((pair, score), target) in derivatives.iter_mut().zip(scores).zip(targets) {
                    *pair = [f64::from(score - target), 1.0];
                }
            }
            Self::Pairwise { opponents } => {
                derivatives.fill([0.0, LEAST_CURVATURE]);
                for row in 0..targets.len() {
                    for _ in 0..opponents {
                        let other = random.index(targets.len());
                        compare(scores, targets, row, other, derivatives);
                    }
                }
            }
        }
    }
}

/// Adds the derivatives of a pair's loss.
fn compare(scores: &[f32], targets: &[f32], a: usize, b: usize, derivatives: &mut [[f64; 2]]) {
    let (better, worse) = match targets[a].total_cmp(&targets[b]) {
        std::cmp::Ordering::Greater => (a, b),
        std::cmp::Ordering::Less => (b, a),
        std::cmp::Ordering::Equal => return,
    };
    let lead = f64::from(scores[better] - scores[worse]);
    let doubt = 1.0 / (1.0 + libm::exp(lead));
    let curvature = (doubt * (1.0 - doubt)).max(LEAST_CURVATURE);
    derivatives[better][0] -= doubt;
    derivatives[worse][0] += doubt;
    derivatives[better][1] += curvature;
    derivatives[worse][1] += curvature;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairwise_derivatives_are_those_of_the_loss() {
        let loss = |lead: f64| (-lead).exp().ln_1p();
        for lead in [-3.0_f64, -0.5, 0.0, 2.0] {
            let mut derivatives = [[0.0; 2]; 2];
            compare(&[0.0, lead as f32], &[1.0, 2.0], 0, 1, &mut derivatives);
            let step = 1e-4;
            let (above, here, below) = (loss(lead + step), loss(lead), loss(lead - step));
            let first = (above - below) / (2.0 * step);
            let second = (above - 2.0 * here + below) / (step * step);
            assert!((derivatives[1][0] - first).abs() < 1e-6);
            assert!((derivatives[0][0] + first).abs() < 1e-6);
            assert!((derivatives[1][1] - second).abs() < 1e-5);
        }
    }
}
