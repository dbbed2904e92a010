//! Cuts sizes without a known range into pieces of few lengths.
//!
//! ```text
//! 1000  ->  768 at 0, 256 at 744
//! 1030  ->  1024 at 0, 6 at 1024
//! ```
//!
//! There are two lengths per power of two, so that a few dozen kernels serve all values.

/// Whether pieces of this length have kernels: 1 to 8, then two lengths per power of two.
#[must_use]
pub fn is_piece(length: i64) -> bool {
    length <= 8 || largest_piece(length) == length
}

/// The largest piece of at most this length.
#[must_use]
pub fn largest_piece(length: i64) -> i64 {
    if length <= 8 {
        return length;
    }
    let power = 1 << length.ilog2();
    if length >= power + power / 2 { power + power / 2 } else { power }
}

/// The rounded-up length for a size that cannot be cut: at most a fifth larger, beyond 8.
#[must_use]
pub fn round_up(value: i64) -> i64 {
    if value <= 8 {
        return value;
    }
    let step = (1 << (value - 1).ilog2()) / 4;
    (value + step - 1) / step * step
}

/// The most covers to evaluate.
const MOST_TRIED: usize = 2000;

/// The most pieces of a value, unless the longest lengths need more.
const MOST_PIECES: usize = 12;

/// How many lengths are tried per position, from the longest that fits.
const TRIED_LENGTHS: usize = 5;

/// The cheapest pieces that cover a value: start and length of each. The last one is moved back to
/// end with the value, and recomputes some elements.
#[must_use]
pub fn pieces(value: i64, cost: impl Fn(i64) -> f64) -> Vec<(i64, i64)> {
    let mut search = Search::new(value, cost);
    search.extend(0, value, 0.0);
    let mut start = 0;
    let mut place = |length: &i64| {
        let at = start.min(value - length);
        start += length;
        (at, *length)
    };
    search.best.iter().map(&mut place).collect()
}

/// Branch and bound over pieces in descending order.
struct Search {
    /// The lengths that fit with their costs, longest first.
    lengths: Vec<(i64, f64)>,
    /// The least cost per step along the size.
    step: f64,
    chosen: Vec<i64>,
    best: Vec<i64>,
    least: f64,
    tried: usize,
}

impl Search {
    fn new(value: i64, cost: impl Fn(i64) -> f64) -> Self {
        let mut lengths = Vec::new();
        let mut length = largest_piece(value);
        while length > 0 {
            lengths.push((length, cost(length)));
            length = largest_piece(length - 1);
        }
        let per_step = lengths.iter().map(|(length, cost)| cost / *length as f64);
        let step = per_step.fold(f64::INFINITY, f64::min);
        Self { lengths, step, chosen: Vec::new(), best: Vec::new(), least: f64::INFINITY, tried: 0 }
    }

    /// Covers the rest with lengths from number `from` on.
    fn extend(&mut self, from: usize, left: i64, cost: f64) {
        if left <= 0 {
            if cost < self.least {
                (self.least, self.best) = (cost, self.chosen.clone());
            }
            return;
        }
        self.tried += 1;
        let is_hopeless = cost + left as f64 * self.step >= self.least;
        let is_enough = self.tried > MOST_TRIED || self.chosen.len() >= MOST_PIECES;
        if is_hopeless || is_enough && !self.best.is_empty() {
            return;
        }
        // The longest that fits, then shorter ones, then the shortest that covers the rest.
        let inside = self.lengths[from..].partition_point(|(length, _)| *length > left) + from;
        let inside_ones = (inside..self.lengths.len()).take(TRIED_LENGTHS);
        let covers_all = inside.checked_sub(1).filter(|number| *number >= from);
        for number in inside_ones.chain(covers_all) {
            let (length, more) = self.lengths[number];
            self.chosen.push(length);
            self.extend(number, left - length, cost + more);
            self.chosen.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_value() {
        let calls = [0.0, 30.0, 1e9];
        for (number, call) in calls.into_iter().enumerate() {
            for value in 1..5000 {
                let found = pieces(value, |length| call + length as f64);
                let mut covered = 0;
                for (start, length) in &found {
                    assert!(
                        is_piece(*length) && *start <= covered && start + length <= value,
                        "{value}: {found:?}"
                    );
                    covered = covered.max(start + length);
                }
                assert_eq!(covered, value);
                assert!(number < 2 || found.len() <= 2, "{value}: {found:?}");
            }
        }
    }

    #[test]
    fn the_cheapest_pieces_are_chosen() {
        let lengths = |value, cost: &dyn Fn(i64) -> f64| -> Vec<i64> {
            pieces(value, cost).iter().map(|(_, length)| *length).collect()
        };
        let usual = |length: i64| 30.0 + length as f64;
        assert_eq!(lengths(1000, &usual), [768, 256]);
        assert_eq!(lengths(1030, &usual), [1024, 6]);
        // A slow kernel is avoided, however well it fits.
        let slow = |length: i64| usual(length) * if length == 1024 { 3.0 } else { 1.0 };
        assert_eq!(lengths(1030, &slow), [768, 256, 6]);
        assert_eq!(lengths(1024, &slow), [768, 256]);
        // Long pieces exceed the cache.
        let cached = |length: i64| 30.0 + length as f64 * if length > 256 { 2.0 } else { 1.0 };
        assert_eq!(lengths(768, &cached), [256, 256, 256]);
        // Recomputation is cheaper than another call.
        assert_eq!(lengths(100, &|length| 1000.0 + length as f64), [96, 4]);
        assert_eq!(lengths(95, &|length| 1000.0 + length as f64), [64, 32]);
    }

    #[test]
    fn a_search_for_pieces_ends_soon() {
        for value in [123_456_789, i64::from(i32::MAX), 1 << 40] {
            // Constant, proportional, and free short pieces.
            let costs: [fn(i64) -> f64; 3] =
                [|_| 1.0, |length| length as f64, |length| (length as f64).powi(3)];
            for cost in costs {
                let mut search = Search::new(value, cost);
                search.extend(0, value, 0.0);
                let Search { best, tried, .. } = search;
                assert!(best.iter().sum::<i64>() >= value, "{value}: {best:?}");
                assert!(tried < 20 * MOST_TRIED, "{value}: {tried}");
            }
        }
    }

    #[test]
    fn sizes_are_rounded_up_by_a_quarter_at_most() {
        for value in 1..10_000 {
            let up = round_up(value);
            assert!(up >= value && (value <= 8 || 4 * up <= 5 * value + 4), "{value} {up}");
            assert_eq!(round_up(up), up);
            let piece = largest_piece(value);
            assert!(is_piece(piece) && piece <= value && 3 * piece > 2 * value - 3);
        }
    }
}
