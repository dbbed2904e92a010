//! How a size of any value is cut where no range of it is known ahead.
//!
//! ```text
//! 1000  ->  768 at 0, 256 at 744
//! 1030  ->  1024 at 0, 6 at 1024
//! ```
//!
//! Kernels have few lengths, two between powers of two, so that a few dozen serve all values.

/// Whether pieces of this length have kernels: 1 to 8, and two lengths between powers of two.
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

/// The smallest piece of at least this length.
fn smallest_piece(length: i64) -> i64 {
    let below = largest_piece(length);
    if below == length {
        return length;
    }
    let power = 1 << length.ilog2();
    if below == power { power + power / 2 } else { 2 * power }
}

/// To what a size is rounded up that cannot be cut: by a fifth at most, beyond 8.
#[must_use]
pub fn round_up(value: i64) -> i64 {
    if value <= 8 {
        return value;
    }
    let step = (1 << (value - 1).ilog2()) / 4;
    (value + step - 1) / step * step
}

/// What a kernel for a piece costs: for a call, and for each step along the size.
#[derive(Debug, Clone, Copy)]
pub struct Price {
    /// For a call, whatever its length.
    pub call: f64,
    /// For each step along the size.
    pub step: f64,
}

impl Price {
    fn of(&self, length: i64) -> f64 {
        self.call + self.step * length as f64
    }
}

/// The pieces that cover a value at the least cost: where each starts, and its length. The last one is moved back to end
/// where the value ends, and computes again what others have computed.
#[must_use]
pub fn pieces(value: i64, price: &Price) -> Vec<(i64, i64)> {
    let mut best: Option<(f64, Vec<i64>)> = None;
    let (mut lengths, mut cost, mut left) = (Vec::new(), 0.0, value);
    while left > 0 {
        // To end with one piece that covers the rest, if it is not longer than the whole.
        let last = smallest_piece(left);
        if last <= value && best.as_ref().is_none_or(|(least, _)| cost + price.of(last) < *least) {
            best = Some((cost + price.of(last), [lengths.as_slice(), &[last]].concat()));
        }
        let next = largest_piece(left);
        lengths.push(next);
        cost += price.of(next);
        left -= next;
    }
    let lengths = best.map_or(lengths, |(_, lengths)| lengths);
    let mut start = 0;
    let mut place = |length: &i64| {
        let at = start.min(value - length);
        start += length;
        (at, *length)
    };
    lengths.iter().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_value() {
        let prices = [
            Price { call: 0.0, step: 1.0 },
            Price { call: 30.0, step: 1.0 },
            Price { call: 1e9, step: 1.0 },
        ];
        for (number, price) in prices.iter().enumerate() {
            for value in 1..5000 {
                let found = pieces(value, price);
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
    fn sizes_are_rounded_up_by_a_quarter_at_most() {
        for value in 1..10_000 {
            let up = round_up(value);
            assert!(up >= value && (value <= 8 || 4 * up <= 5 * value + 4), "{value} {up}");
            assert_eq!(round_up(up), up);
            let piece = smallest_piece(value);
            assert!(is_piece(piece) && piece >= value && 3 * piece <= 6 * value);
        }
    }
}
