//! [`Boosted`]: gradient-boosted regression trees on histograms.
//!
//! The method of XGBoost (Chen and Guestrin, 2016) with the histograms of LightGBM (Ke et al.,
//! 2017): features are binned once, with at most 64 bins; a tree is grown level by level; a node's
//! histogram sums first and second derivatives of the loss per bin; the smaller child of a split is
//! summed, the larger one is the difference. Searches use it to learn within milliseconds from
//! hundreds of measured candidates which of thousands of others are worth measuring.

mod bins;
mod grow;
mod objective;
mod tree;

pub use objective::Objective;

use bins::Binned;
use grow::Grower;
use tensorwright_random::SplitMix;
use tree::Tree;

/// Hyperparameters of boosting.
#[derive(Debug, Clone, PartialEq)]
pub struct Boosting {
    /// The loss function.
    pub objective: Objective,
    /// The number of trees.
    pub trees: usize,
    /// The maximum depth, at most [`Boosting::DEEPEST`].
    pub depth: usize,
    /// The learning rate (shrinkage).
    pub rate: f32,
    /// The penalty on the squares of leaves (XGBoost's lambda).
    pub l2: f64,
    /// The minimum gain of a split (XGBoost's gamma).
    pub min_gain: f64,
    /// The minimum sum of second derivatives of a leaf; the number of rows if the loss is squared.
    pub min_weight: f64,
    /// The fraction of rows sampled per tree.
    pub rows: f64,
    /// The fraction of features sampled per tree.
    pub features: f64,
    /// The bins per feature, at most 64.
    pub bins: usize,
}

impl Boosting {
    /// The maximum depth: a tree is stored with all its possible nodes.
    pub const DEEPEST: usize = 12;
}

impl Default for Boosting {
    fn default() -> Self {
        Self {
            objective: Objective::Squared,
            trees: 50,
            depth: 6,
            rate: 0.15,
            l2: 1.0,
            min_gain: 1e-6,
            min_weight: 3.0,
            rows: 0.8,
            features: 0.8,
            bins: 64,
        }
    }
}

/// A boosted ensemble of regression trees.
#[derive(Debug, Clone, PartialEq)]
pub struct Boosted {
    features: usize,
    base: f32,
    trees: Vec<Tree>,
    importance: Vec<f64>,
}

impl Boosted {
    /// Fits targets from rows of features (row-major). Rows and targets beyond the shorter of the
    /// two are ignored, and so are rows with non-finite targets. Features may be infinite or NaN;
    /// NaN sorts with the least values.
    #[must_use]
    pub fn fit(
        rows: &[f32],
        features: usize,
        targets: &[f32],
        boosting: &Boosting,
        seed: u64,
    ) -> Self {
        let (rows, targets) = usable(rows, features, targets);
        let mut random = SplitMix::new(seed);
        let base = boosting.objective.base(&targets);
        let mut model = Self { features, base, trees: Vec::new(), importance: vec![0.0; features] };
        let data = Binned::new(&rows, features, boosting.bins.clamp(2, 64));
        if targets.is_empty() || data.is_constant() {
            return model;
        }
        let mut scores = vec![base; targets.len()];
        let mut derivatives = vec![[0.0; 2]; targets.len()];
        let mut grower = Grower::new(&data, boosting);
        for _ in 0..boosting.trees {
            boosting.objective.derive(&scores, &targets, &mut random, &mut derivatives);
            let tree = grower.grow(&derivatives, &mut random, &mut model.importance);
            tree.add_to(&rows, features, &mut scores);
            model.trees.push(tree);
        }
        model
    }

    /// Predicts each row. Features of an incomplete last row are ignored.
    ///
    /// With [`Objective::Pairwise`] only the order of predictions is meaningful.
    #[must_use]
    pub fn predict(&self, rows: &[f32]) -> Vec<f32> {
        let mut scores = vec![self.base; rows.len() / self.features.max(1)];
        for tree in &self.trees {
            tree.add_to(rows, self.features, &mut scores);
        }
        scores
    }

    /// The fraction of each feature in the total gain of splits; all zero without splits.
    #[must_use]
    pub fn importance(&self) -> Vec<f64> {
        let total: f64 = self.importance.iter().sum();
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        self.importance.iter().map(|gain| gain * scale).collect()
    }
}

/// The usable rows and their targets.
fn usable(rows: &[f32], features: usize, targets: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let pairs = || {
        let pairs = rows.chunks_exact(features.max(1)).zip(targets);
        pairs.filter(|(_, target)| target.is_finite())
    };
    (pairs().flat_map(|(row, _)| row).copied().collect(), pairs().map(|(_, y)| *y).collect())
}

#[cfg(test)]
mod tests;
