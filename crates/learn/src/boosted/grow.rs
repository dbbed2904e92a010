//! Growing of one tree: histograms, splits, partitions.

use std::ops::Range;

use super::Boosting;
use super::bins::Binned;
use super::tree::Tree;
use tensorwright_random::SplitMix;

/// Sums of first and second derivatives.
type Sums = [f64; 2];

/// Grows trees on one table, with buffers that are reused from tree to tree.
pub(super) struct Grower<'a> {
    data: &'a Binned,
    boosting: &'a Boosting,
    depth: usize,
    /// The rows of the tree; those of a node are contiguous.
    rows: Vec<u32>,
    /// A buffer for rows that go right during a partition.
    moved: Vec<u32>,
    /// The features that the tree may split on.
    features: Vec<usize>,
    /// The derivatives of a node's rows, in their order.
    gathered: Vec<Sums>,
    /// Free histograms.
    spare: Vec<Vec<Sums>>,
}

/// A node that may be split.
struct OpenNode {
    node: usize,
    rows: Range<usize>,
    sums: Sums,
    histogram: Vec<Sums>,
}

/// The best split of a node.
struct BestSplit {
    gain: f64,
    feature: usize,
    bin: usize,
    left: Sums,
}

impl<'a> Grower<'a> {
    pub(super) fn new(data: &'a Binned, boosting: &'a Boosting) -> Self {
        let depth = boosting.depth.clamp(1, Boosting::DEEPEST);
        let (rows, moved, features) = (Vec::new(), Vec::new(), Vec::new());
        let (gathered, spare) = (Vec::new(), Vec::new());
        Self { data, boosting, depth, rows, moved, features, gathered, spare }
    }

    /// Grows a tree on the given derivatives; adds its gains to `importance`.
    pub(super) fn grow(
        &mut self,
        derivatives: &[Sums],
        random: &mut SplitMix,
        importance: &mut [f64],
    ) -> Tree {
        self.sample(random);
        let mut tree = Tree::new(self.depth);
        let rows = 0..self.rows.len();
        let sums = self.gather(&rows, derivatives);
        let histogram = self.histogram(&rows);
        let mut level = vec![OpenNode { node: 0, rows, sums, histogram }];
        for depth in 1..=self.depth {
            let mut next = Vec::new();
            for open in level {
                let Some(found) = self.best_split(&open) else {
                    tree.set_leaf(open.node, self.leaf(open.sums));
                    self.spare.push(open.histogram);
                    continue;
                };
                importance[found.feature] += found.gain;
                let threshold = self.data.features[found.feature].cuts[found.bin];
                tree.split(open.node, found.feature, threshold);
                let children = self.divide(open, &found, derivatives, depth < self.depth);
                next.extend(children);
            }
            level = next;
        }
        for open in level {
            tree.set_leaf(open.node, self.leaf(open.sums));
        }
        tree
    }

    /// Samples the rows and features of the tree.
    fn sample(&mut self, random: &mut SplitMix) {
        let share = |of: usize, share: f64| ((of as f64 * share).ceil() as usize).clamp(1, of);
        let varying = |feature: &usize| !self.data.features[*feature].cuts.is_empty();
        self.rows.clear();
        self.rows.extend(0..self.data.rows as u32);
        let count = share(self.rows.len(), self.boosting.rows);
        if count < self.rows.len() {
            random.choose_first(&mut self.rows, count);
            self.rows.truncate(count);
            // Sorted, so that columns are read forwards.
            self.rows.sort_unstable();
        }
        self.features.clear();
        self.features.extend((0..self.data.features.len()).filter(varying));
        let count = share(self.features.len(), self.boosting.features);
        if count < self.features.len() {
            random.choose_first(&mut self.features, count);
            self.features.truncate(count);
            self.features.sort_unstable();
        }
    }

    /// Gathers the derivatives of a node's rows, and sums them.
    fn gather(&mut self, rows: &Range<usize>, derivatives: &[Sums]) -> Sums {
        self.gathered.clear();
        self.gathered.extend(self.rows[rows.clone()].iter().map(|row| derivatives[*row as usize]));
        self.gathered.iter().fold([0.0; 2], |sums, pair| [sums[0] + pair[0], sums[1] + pair[1]])
    }

    /// The histogram of a node with gathered derivatives.
    fn histogram(&mut self, rows: &Range<usize>) -> Vec<Sums> {
        let mut histogram = self.spare.pop().unwrap_or_default();
        histogram.clear();
        histogram.resize(self.data.bins, [0.0; 2]);
        let rows = &self.rows[rows.clone()];
        for feature in &self.features {
            let feature = &self.data.features[*feature];
            let bins = &mut histogram[feature.start..=feature.start + feature.cuts.len()];
            let column = &feature.column[..self.data.rows];
            for (row, pair) in rows.iter().zip(&self.gathered) {
                let bin = &mut bins[usize::from(column[*row as usize])];
                bin[0] += pair[0];
                bin[1] += pair[1];
            }
        }
        histogram
    }

    /// The legal split with the largest gain, if any (XGBoost, equation 7).
    fn best_split(&self, open: &OpenNode) -> Option<BestSplit> {
        let l2 = self.boosting.l2;
        let whole = open.sums[0] * open.sums[0] / (open.sums[1] + l2);
        // The sum of both sides' scores with a single division: divisions dominate this loop.
        let scores = |left: Sums, right: Sums| {
            let (below_left, below_right) = (left[1] + l2, right[1] + l2);
            let above = left[0] * left[0] * below_right + right[0] * right[0] * below_left;
            above / (below_left * below_right)
        };
        let mut best_scores = whole + 2.0 * self.boosting.min_gain;
        let least = self.boosting.min_weight;
        if open.sums[1] < 2.0 * least {
            return None;
        }
        let mut best: Option<BestSplit> = None;
        for feature in &self.features {
            let columns = &self.data.features[*feature];
            let bins = &open.histogram[columns.start..columns.start + columns.cuts.len()];
            let mut left = [0.0; 2];
            for (bin, sums) in bins.iter().enumerate() {
                left = [left[0] + sums[0], left[1] + sums[1]];
                let right = [open.sums[0] - left[0], open.sums[1] - left[1]];
                // A cut behind an empty bin equals the previous cut.
                if sums[1] == 0.0 || left[1] < least || right[1] < least {
                    continue;
                }
                let gained = scores(left, right);
                if gained > best_scores {
                    best_scores = gained;
                    best = Some(BestSplit {
                        gain: 0.5 * (gained - whole),
                        feature: *feature,
                        bin,
                        left,
                    });
                }
            }
        }
        best
    }

    /// The value of a leaf: a shrunken Newton step (XGBoost, equation 5).
    fn leaf(&self, sums: Sums) -> f32 {
        let curvature = (sums[1] + self.boosting.l2).max(f64::MIN_POSITIVE);
        (-sums[0] / curvature) as f32 * self.boosting.rate
    }

    /// Splits a node. Children that may be split again get histograms.
    fn divide(
        &mut self,
        open: OpenNode,
        found: &BestSplit,
        derivatives: &[Sums],
        deeper: bool,
    ) -> [OpenNode; 2] {
        let middle = self.partition(&open.rows, found);
        let (left, right) = (open.rows.start..middle, middle..open.rows.end);
        let rest = [open.sums[0] - found.left[0], open.sums[1] - found.left[1]];
        let mut histograms = [Vec::new(), Vec::new()];
        if deeper {
            let left_is_smaller = left.len() <= right.len();
            let smaller = if left_is_smaller { &left } else { &right };
            self.gather(smaller, derivatives);
            let small = self.histogram(smaller);
            let mut large = open.histogram;
            for (sums, small) in large.iter_mut().zip(&small) {
                *sums = [sums[0] - small[0], sums[1] - small[1]];
            }
            histograms = if left_is_smaller { [small, large] } else { [large, small] };
        } else {
            self.spare.push(open.histogram);
        }
        let [of_left, of_right] = histograms;
        let node = 2 * open.node;
        [
            OpenNode { node: node + 1, rows: left, sums: found.left, histogram: of_left },
            OpenNode { node: node + 2, rows: right, sums: rest, histogram: of_right },
        ]
    }

    /// Partitions the rows into left and right, both in order; returns where the right ones start.
    fn partition(&mut self, rows: &Range<usize>, found: &BestSplit) -> usize {
        let column = &self.data.features[found.feature].column;
        self.moved.clear();
        let mut end = rows.start;
        for place in rows.clone() {
            let row = self.rows[place];
            if usize::from(column[row as usize]) <= found.bin {
                self.rows[end] = row;
                end += 1;
            } else {
                self.moved.push(row);
            }
        }
        self.rows[end..rows.end].copy_from_slice(&self.moved);
        end
    }
}
