//! Significance test: which kernels are faster than the incumbent.
//!
//! Kernels are timed alternately: a *round* is one sample of each, taken at about the same time.
//! Only the ratio of two samples of one round matters, because a slow moment affects both. The test
//! is Wilcoxon's signed-rank test on the logarithms of these ratios ("Individual comparisons by
//! ranking methods", 1945), one-sided and exact: it only assumes that the noise is symmetric.
//! Rounds with an interruption are dropped, judged by the size of the logarithm and not by its
//! sign, so the test stays exact. With several challengers, the level is divided by their number
//! (Bonferroni).
//!
//! With 2 % of noise and one sample in twenty interrupted, 24 rounds nearly always detect a gain of
//! 5 %.

use super::stats::quantile;

/// The probability that a challenger wins although all are equally fast.
pub const LEVEL: f64 = 0.02;

/// A round whose logarithm exceeds the median size by this factor was interrupted.
const INTERRUPTED: f64 = 5.0;

/// The most ratios to rank. More rounds are merged into this number of groups of neighbors, each
/// with the median of its ratios: disturbances that last for a few rounds then count once.
const MOST_GROUPS: usize = 48;

/// The winner of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faster {
    /// The position of the kernel that is faster than the incumbent.
    pub place: usize,
    /// The median ratio of its samples to those of the incumbent, below one.
    pub ratio: f64,
    /// The probability of these rounds if it were not faster (p-value).
    pub p_value: f64,
}

/// The fastest of the kernels that are significantly faster than the incumbent; `None` if none is.
/// `rounds` has the samples of each kernel, one per round; a kernel without samples is ignored.
///
/// ```
/// use tensorwright_runtime::timing::paired::{LEVEL, faster};
///
/// let incumbent = vec![1.00, 1.01, 0.99, 1.60, 1.02, 1.00, 0.98, 1.01];
/// let challenger = incumbent.iter().map(|seconds| 0.95 * seconds).collect();
/// let found = faster(&[incumbent.clone(), challenger], 0, LEVEL).expect("5 % are found");
/// assert_eq!(found.place, 1);
/// assert!((found.ratio - 0.95).abs() < 1e-12);
///
/// let noisy = vec![0.99, 1.02, 0.98, 1.61, 1.03, 0.99, 0.99, 1.02];
/// assert_eq!(faster(&[incumbent, noisy], 0, LEVEL), None);
/// ```
#[must_use]
pub fn faster(rounds: &[Vec<f64>], incumbent: usize, level: f64) -> Option<Faster> {
    let theirs = rounds.get(incumbent)?;
    let takes_part = |place: usize| place != incumbent && !rounds[place].is_empty();
    let challengers: Vec<usize> = (0..rounds.len()).filter(|place| takes_part(*place)).collect();
    let level = level / challengers.len().max(1) as f64;
    let compare = |place: usize| {
        let ratios = log_ratios(&rounds[place], theirs);
        let ratio = median(&ratios);
        let p_value = p_value(&ratios);
        (p_value <= level && ratio < 1.0).then_some(Faster { place, ratio, p_value })
    };
    let found = challengers.into_iter().filter_map(compare);
    found.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

/// The median ratio of the samples of two kernels in the same rounds, as [`faster`] uses it. `None`
/// if they have no common round.
///
/// ```
/// use tensorwright_runtime::timing::paired::ratio;
///
/// // Both slow down in the middle, and the first always takes half the time.
/// let half = ratio(&[1.0, 3.0, 1.0], &[2.0, 6.0, 2.0]).expect("three rounds");
/// assert!((half - 0.5).abs() < 1e-12);
/// assert_eq!(ratio(&[], &[1.0]), None);
/// ```
#[must_use]
pub fn ratio(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let ratios = log_ratios(ours, theirs);
    (!ratios.is_empty()).then(|| median(&ratios))
}

/// The median ratio, from logarithms.
fn median(log_ratios: &[f64]) -> f64 {
    quantile(&mut log_ratios.to_vec(), 0.5).exp()
}

/// Logarithms of the ratios of rounds, grouped if there are many, without interrupted ones.
fn log_ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> =
        pairs.map(|(ours, theirs)| (ours / theirs).ln()).filter(|r| r.is_finite()).collect();
    let size = ratios.len().div_ceil(MOST_GROUPS).max(1);
    let mut ratios: Vec<f64> =
        ratios.chunks(size).map(|group| quantile(&mut group.to_vec(), 0.5)).collect();
    let mut sizes: Vec<f64> = ratios.iter().map(|ratio| ratio.abs()).collect();
    let usual = quantile(&mut sizes, 0.5);
    ratios.retain(|ratio| ratio.abs() <= INTERRUPTED * usual);
    ratios
}

/// The p-value of ratios under the hypothesis that they are symmetric around one. Exact: among all
/// sign assignments of the ranks, the fraction with at least this sum below one.
fn p_value(log_ratios: &[f64]) -> f64 {
    let mut ratios: Vec<f64> = log_ratios.iter().copied().filter(|ratio| *ratio != 0.0).collect();
    ratios.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&ratios);
    let below = ratios.iter().zip(&ranks).filter(|(ratio, _)| **ratio < 0.0);
    let sum: usize = below.map(|(_, rank)| *rank).sum();
    let total: usize = ranks.iter().sum();
    // The distribution of the sum, computed rank by rank.
    let mut chances = vec![0.0; total + 1];
    chances[0] = 1.0;
    for rank in ranks {
        for at in (0..=total).rev() {
            let with = if at >= rank { chances[at - rank] } else { 0.0 };
            chances[at] = 0.5 * (chances[at] + with);
        }
    }
    chances[sum..].iter().sum::<f64>().min(1.0)
}

/// Twice the ranks of sorted values: equal values share the mean of their ranks.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    while let Some(value) = sorted.get(ranks.len()) {
        let first = ranks.len();
        let equal = sorted[first..].iter().take_while(|other| other.abs() == value.abs()).count();
        ranks.extend(std::iter::repeat_n(2 * first + equal + 1, equal));
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The noise of virtual machines: 2 % always, and one sample in twenty interrupted.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 11) as f64 / (1u64 << 53) as f64
        }

        fn sample(&mut self, seconds: f64) -> f64 {
            let normal: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
            let interrupted = if self.uniform() < 0.05 { 1.0 + self.uniform() } else { 1.0 };
            seconds * (0.02 * normal).exp() * interrupted
        }

        /// Rounds of kernels on a machine whose speed drifts.
        fn rounds(&mut self, kernels: &[f64], count: usize) -> Vec<Vec<f64>> {
            let mut rounds = vec![Vec::new(); kernels.len()];
            for _ in 0..count {
                let drift = 1.0 + 0.3 * self.uniform();
                for (samples, seconds) in rounds.iter_mut().zip(kernels) {
                    samples.push(self.sample(seconds * drift));
                }
            }
            rounds
        }
    }

    /// How often each position wins in a hundred comparisons; the last entry counts those without a
    /// winner.
    fn tries(kernels: &[f64], count: usize) -> Vec<usize> {
        let mut wins = vec![0; kernels.len() + 1];
        for seed in 0..100 {
            let rounds = Noise(1000 + seed).rounds(kernels, count);
            let place = faster(&rounds, 0, LEVEL).map_or(kernels.len(), |found| found.place);
            wins[place] += 1;
        }
        wins
    }

    #[test]
    fn equal_kernels_have_no_winner_in_95_of_100_tries() {
        for count in [12, 24, 40, 200] {
            let wins = tries(&[1.0; 7], count);
            assert!(wins[7] >= 95, "{count} rounds: {wins:?}");
        }
    }

    #[test]
    fn five_percent_are_found_in_90_of_100_tries() {
        for count in [24, 40, 200] {
            let wins = tries(&[1.0, 1.0, 0.95, 1.0, 1.0, 1.0, 1.0], count);
            assert!(wins[2] >= 90, "{count} rounds: {wins:?}");
        }
    }

    #[test]
    fn the_test_is_exact() {
        // All 8 of 8 below: one of 256 ways. All but the smallest: two of 256.
        let mut ratios: Vec<f64> = (1..=8).map(|rank| -f64::from(rank)).collect();
        assert_eq!(p_value(&ratios), 1.0 / 256.0);
        ratios[0] = 1.0;
        assert_eq!(p_value(&ratios), 2.0 / 256.0);
        assert_eq!(p_value(&[]), 1.0);
        assert_eq!(p_value(&[0.0, 0.0]), 1.0);
        assert_eq!(doubled_ranks(&[1.0, -2.0, 2.0, 3.0]), [2, 5, 5, 8]);
    }

    #[test]
    fn what_was_not_timed_takes_no_part() {
        let steady = vec![1.0; 12];
        assert_eq!(faster(&[steady.clone(), vec![]], 0, LEVEL), None);
        assert_eq!(faster(&[vec![], steady.clone()], 0, LEVEL), None);
        assert_eq!(faster(&[steady], 3, LEVEL), None);
    }
}
