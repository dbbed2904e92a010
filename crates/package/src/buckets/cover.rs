//! Selects the kernels that compute each value of a dynamic size.
//!
//! ```text
//! buckets 1 2 4 8 16:   11 -> 8 and 4      the second kernel computes one element again
//!                       15 -> 16           with one element of padding
//! ```
//!
//! A value that is a bucket has its own kernel. For the others, dynamic programming over the
//! remaining length finds the cheapest cover: consecutive kernels of at most the value, the last
//! one moved back to end with the tensors; or one larger kernel on padded copies.

use super::variation::Kind;

/// Consecutive slices with kernels of the same bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The number of the bucket.
    pub bucket: usize,
    /// The number of slices.
    pub count: usize,
}

/// The costs of kernels and copies, in any common unit.
#[derive(Debug, Clone)]
pub struct Costs {
    /// A call of the kernel of each bucket.
    pub kernels: Vec<f64>,
    /// The cost of copying the tensors of a slice, per unit of the size.
    pub copy_per_step: f64,
    /// The fixed cost of copying: a loop over the rows of all tensors.
    pub copy_once: f64,
    /// Whether even full slices are copied, because the size is not outermost.
    pub always_copies: bool,
}

impl Costs {
    fn copy(&self, bucket: i64) -> f64 {
        self.copy_once + self.copy_per_step * bucket as f64
    }

    /// The cost of a slice within the value.
    fn inside(&self, number: usize, bucket: i64) -> f64 {
        self.kernels[number] + if self.always_copies { self.copy(bucket) } else { 0.0 }
    }
}

/// The cheapest way to compute every value from `first` to the last bucket, by value.
#[must_use]
pub fn covers(first: i64, buckets: &[i64], kind: Kind, costs: &Costs) -> Vec<Vec<Run>> {
    let last = buckets.last().copied().unwrap_or(first);
    let mut inside = Inside::default();
    let mut covers = Vec::new();
    for value in first..=last {
        let number = buckets.partition_point(|bucket| *bucket < value);
        if buckets.get(number) == Some(&value) {
            inside = Inside::default();
            covers.push(vec![Run { bucket: number, count: 1 }]);
            continue;
        }
        let padded = |number: &usize| costs.kernels[*number] + costs.copy(buckets[*number]);
        let cheapest = (number..buckets.len()).min_by(|a, b| padded(a).total_cmp(&padded(b)));
        let bucket = cheapest.unwrap_or(number);
        let mut cover = vec![Run { bucket, count: 1 }];
        if kind == Kind::Sliced && number > 0 {
            inside.extend(&buckets[..number], value, costs);
            if inside.cost(value) < padded(&bucket) {
                cover = inside.cover(value, buckets);
            }
        }
        covers.push(cover);
    }
    covers
}

/// The cheapest covers by length, with all buckets allowed.
#[derive(Debug, Default)]
struct Inside {
    /// The cost and the first bucket.
    best: Vec<(f64, usize)>,
}

impl Inside {
    fn extend(&mut self, buckets: &[i64], value: i64, costs: &Costs) {
        if self.best.is_empty() {
            self.best.push((0.0, 0));
        }
        for left in self.best.len() as i64..=value {
            let option = |(number, bucket): (usize, &i64)| {
                let rest = self.best[(left - bucket).max(0) as usize].0;
                (costs.inside(number, *bucket) + rest, number)
            };
            let options = buckets.iter().enumerate().map(option);
            // Of equal costs the larger bucket: fewer calls.
            let best = options.min_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
            self.best.push(best.unwrap_or((f64::INFINITY, 0)));
        }
    }

    fn cost(&self, value: i64) -> f64 {
        self.best.get(value as usize).map_or(f64::INFINITY, |best| best.0)
    }

    /// The buckets of the cheapest cover, largest first.
    fn cover(&self, value: i64, buckets: &[i64]) -> Vec<Run> {
        let mut numbers = Vec::new();
        let mut left = value;
        while left > 0 {
            let number = self.best[left as usize].1;
            numbers.push(number);
            left -= buckets[number];
        }
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let mut runs: Vec<Run> = Vec::new();
        for bucket in numbers {
            match runs.last_mut() {
                Some(run) if run.bucket == bucket => run.count += 1,
                _ => runs.push(Run { bucket, count: 1 }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(kernels: &[f64]) -> Costs {
        Costs {
            kernels: kernels.to_vec(),
            copy_per_step: 0.5,
            copy_once: 1.0,
            always_copies: false,
        }
    }

    /// The covers as text: `8+4` for two slices, `16` for one.
    fn text(first: i64, buckets: &[i64], kind: Kind, costs: &Costs) -> Vec<String> {
        let one = |cover: &Vec<Run>| {
            let part = |run: &Run| vec![buckets[run.bucket].to_string(); run.count].join("+");
            cover.iter().map(part).collect::<Vec<_>>().join("+")
        };
        covers(first, buckets, kind, costs).iter().map(one).collect()
    }

    #[test]
    fn slices_and_padding_are_weighed() {
        let buckets = [1, 2, 4, 8, 16];
        let proportional = costs(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        let found = text(1, &buckets, Kind::Sliced, &proportional);
        let expected = [
            "1", "2", "2+1", "4", "4+1", "4+2", "4+2+1", "8", "8+1", "8+2", "8+2+1", "8+4",
            "8+4+1", "8+4+2", "8+4+2+1", "16",
        ];
        assert_eq!(found, expected);
        // Expensive calls lead to fewer of them.
        let dear = costs(&[5.0, 5.5, 6.0, 8.0, 12.0]);
        let found = text(9, &buckets, Kind::Sliced, &dear);
        let expected = ["8+1", "8+2", "8+4", "8+4", "8+8", "8+8", "8+8", "16"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_reduced_size_is_padded_only() {
        let found = text(1, &[2, 4], Kind::Padded, &costs(&[1.0, 100.0]));
        assert_eq!(found, ["2", "2", "4", "4"]);
    }

    #[test]
    fn every_cover_is_as_cheap_as_trying_all_of_them() {
        let buckets = [3, 5, 7, 12];
        let costs = costs(&[3.5, 4.0, 7.5, 9.0]);
        for (value, cover) in (3..).zip(covers(3, &buckets, Kind::Sliced, &costs)) {
            if buckets.contains(&value) {
                continue;
            }
            let cost = |runs: &[Run]| -> f64 {
                runs.iter().map(|run| run.count as f64 * costs.kernels[run.bucket]).sum()
            };
            let is_padded = cover.len() == 1 && cover[0].count == 1;
            let bucket = buckets[cover[0].bucket];
            let found = cost(&cover) + if is_padded { costs.copy(bucket) } else { 0.0 };
            // All counts of slices of each bucket.
            let mut best = f64::INFINITY;
            for a in 0..5 {
                for b in 0..4 {
                    for c in 0..3 {
                        let (covered, most) = (3 * a + 5 * b + 7 * c, [(a, 3), (b, 5), (c, 7)]);
                        let allowed = most.iter().all(|(n, bucket)| *n == 0 || *bucket < value);
                        let price = a as f64 * 3.5 + b as f64 * 4.0 + c as f64 * 7.5;
                        best = if covered >= value && allowed { best.min(price) } else { best };
                    }
                }
            }
            for (number, bucket) in buckets.iter().enumerate().filter(|(_, b)| **b > value) {
                best = best.min(costs.kernels[number] + costs.copy(*bucket));
            }
            assert!(found <= best + 1e-9, "{value}: {cover:?} costs {found}, not {best}");
        }
    }
}
