//! Selects the values of a dynamic size that get kernels (buckets).
//!
//! ```text
//! 1..100  ->  1 2 3 4 5 6 7 8 10 12 14 16 20 24 28 32 40 48 56 64 80 96 100
//! ```
//!
//! Every small value has one: rounding 3 up to 4 costs a third. Larger ones grow by at most a
//! quarter, which bounds the padding, and are divisible by the largest possible power of two, so
//! that vectors and register tiles fit.

use tensorwright_tuner::SizeRange;

/// The largest value up to which every value has a kernel.
const SMALL: i64 = 8;

/// The largest power of two that matters: the lanes of the widest vector of floats.
const LANES: i64 = 16;

/// The buckets of a range, in ascending order: the named ones or a default choice. The last one is
/// the end of the range.
#[must_use]
pub fn choose(range: &SizeRange) -> Vec<i64> {
    if !range.buckets.is_empty() {
        return range.buckets.clone();
    }
    let mut buckets = vec![range.first];
    let mut current = range.first;
    while current < range.last {
        current = if current < SMALL { current + 1 } else { next(current) };
        current = current.min(range.last);
        buckets.push(current);
    }
    buckets
}

/// The value after `current`: at most a quarter larger, with the largest power of two.
fn next(current: i64) -> i64 {
    let most = current + current / 4;
    let power = |value: i64| (1 << value.trailing_zeros()).min(LANES);
    (current + 1..=most).max_by_key(|value| (power(*value), *value)).unwrap_or(current + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_by_a_quarter_at_most_and_end_with_the_range() {
        let range = |first, last| SizeRange::new(first, last, Vec::new()).unwrap();
        let text: Vec<String> = choose(&range(1, 100)).iter().map(i64::to_string).collect();
        let expected = "1 2 3 4 5 6 7 8 10 12 14 16 20 24 28 32 40 48 56 64 80 96 100";
        assert_eq!(text.join(" "), expected);
        for (first, last) in [(1, 1), (1, 512), (7, 9), (100, 4000), (33, 130)] {
            let buckets = choose(&range(first, last));
            assert_eq!((buckets.first(), buckets.last()), (Some(&first), Some(&last)));
            for pair in buckets.windows(2) {
                assert!(pair[0] < pair[1], "{pair:?}");
                assert!(pair[0] < SMALL || pair[1] <= pair[0] + pair[0] / 4, "{pair:?}");
            }
        }
        let given = SizeRange::new(1, 512, vec![1, 64, 512]).unwrap();
        assert_eq!(choose(&given), [1, 64, 512]);
    }
}
