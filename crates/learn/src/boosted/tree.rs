//! A regression tree with branch-free traversal.

/// A complete tree: the children of split `n` are `2n + 1` and `2n + 2`, and the leaves follow the
/// splits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    depth: usize,
    splits: Vec<Split>,
    leaves: Vec<f32>,
}

/// Values above the threshold go right.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Split {
    feature: u32,
    threshold: f32,
}

impl Tree {
    /// A tree whose every split sends everything left.
    pub(super) fn new(depth: usize) -> Self {
        let nowhere = Split { feature: 0, threshold: f32::INFINITY };
        let splits = vec![nowhere; (1 << depth) - 1];
        Self { depth, splits, leaves: vec![0.0; 1 << depth] }
    }

    pub(super) fn split(&mut self, node: usize, feature: usize, threshold: f32) {
        self.splits[node] = Split { feature: feature as u32, threshold };
    }

    /// Sets the value of a node. Above the leaf level, its splits send everything left, and that
    /// leaf takes the value.
    pub(super) fn set_leaf(&mut self, mut node: usize, value: f32) {
        while node < self.splits.len() {
            node = 2 * node + 1;
        }
        self.leaves[node - self.splits.len()] = value;
    }

    /// Adds the prediction of the tree for each row to its score.
    pub(super) fn add_to(&self, rows: &[f32], features: usize, scores: &mut [f32]) {
        for (row, score) in rows.chunks_exact(features.max(1)).zip(scores) {
            let mut node = 0;
            for _ in 0..self.depth {
                let split = self.splits[node];
                // NaN is never above a threshold.
                node = 2 * node + 1 + usize::from(row[split.feature as usize] > split.threshold);
            }
            *score += self.leaves[node - self.splits.len()];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_leaves_keep_their_value() {
        let mut tree = Tree::new(2);
        tree.split(0, 1, 0.5);
        tree.set_leaf(1, 10.0);
        tree.split(2, 0, 7.0);
        tree.set_leaf(5, 20.0);
        tree.set_leaf(6, 30.0);
        let mut scores = [1.0; 4];
        tree.add_to(&[9.0, 0.0, 7.0, 1.0, 8.0, 1.0, f32::NAN, f32::NAN], 2, &mut scores);
        assert_eq!(scores, [11.0, 21.0, 31.0, 11.0]);
    }
}
