//! Feature binning: histograms need a small bin number per value.

/// A table of features with each value replaced by its bin number, by column.
#[derive(Debug)]
pub(super) struct Binned {
    pub(super) rows: usize,
    pub(super) features: Vec<Feature>,
    /// The total number of bins of all features: the length of a histogram.
    pub(super) bins: usize,
}

/// One column.
#[derive(Debug)]
pub(super) struct Feature {
    /// Values above `cuts[b]` belong to bins beyond `b`.
    pub(super) cuts: Vec<f32>,
    /// The bin of each row.
    pub(super) column: Vec<u8>,
    /// The offset of the feature's bins in a histogram.
    pub(super) start: usize,
}

impl Binned {
    pub(super) fn new(rows: &[f32], features: usize, most: usize) -> Self {
        let count = rows.len() / features.max(1);
        let mut bins = 0;
        let columns = (0..features).map(|feature| {
            let values = || rows.iter().skip(feature).step_by(features).copied();
            let cuts = cuts(values().collect(), most);
            let bin = |value: f32| cuts.partition_point(|cut| value > *cut) as u8;
            let column = values().map(bin).collect();
            let start = bins;
            bins += cuts.len() + 1;
            Feature { cuts, column, start }
        });
        let features = columns.collect();
        Self { rows: count, features, bins }
    }

    /// Whether no feature distinguishes any two rows.
    pub(super) fn is_constant(&self) -> bool {
        self.features.iter().all(|feature| feature.cuts.is_empty())
    }
}

/// The cuts between values: between all distinct ones if these are few, otherwise quantiles.
fn cuts(mut values: Vec<f32>, most: usize) -> Vec<f32> {
    // NaN sorts with the least values, here as in `Tree::add_to`.
    values.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = f32::NEG_INFINITY);
    values.sort_unstable_by(f32::total_cmp);
    let rows = values.len();
    // Each distinct value, with the cumulative number of rows.
    let mut distinct: Vec<(f32, usize)> = Vec::new();
    for (place, value) in values.into_iter().enumerate() {
        match distinct.last_mut() {
            Some((last, upto)) if *last == value => *upto = place + 1,
            _ => distinct.push((value, place + 1)),
        }
    }
    let all = distinct.len() <= most;
    let mut cuts = Vec::new();
    for pair in distinct.windows(2) {
        let [(low, upto), (high, _)] = [pair[0], pair[1]];
        let due = upto * most >= (cuts.len() + 1) * rows;
        if (all || due) && cuts.len() + 1 < most {
            let middle = low / 2.0 + high / 2.0;
            // Rounding and infinities may move the middle out of the interval.
            cuts.push(if low <= middle && middle < high { middle } else { low });
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_a_bin_each() {
        assert_eq!(cuts(vec![4.0, 1.0, 2.0, 1.0, 4.0], 64), [1.5, 3.0]);
        assert_eq!(cuts(vec![3.0; 9], 64), [] as [f32; 0]);
        assert_eq!(cuts(Vec::new(), 64), [] as [f32; 0]);
        let extremes = vec![f32::NEG_INFINITY, f32::NAN, 0.0, f32::MAX, f32::INFINITY];
        let cuts = cuts(extremes, 64);
        assert_eq!(cuts, [f32::NEG_INFINITY, f32::MAX / 2.0, f32::MAX]);
    }

    #[test]
    fn many_values_share_bins_of_like_size() {
        let cuts = cuts((0..6400).map(|x| (x as f32).sqrt()).collect(), 64);
        assert_eq!(cuts.len(), 63);
        for (place, cut) in cuts.iter().enumerate() {
            let below = cut * cut;
            assert!((below - 100.0 * (place + 1) as f32).abs() < 2.0, "{place}: {below}");
        }
    }
}
