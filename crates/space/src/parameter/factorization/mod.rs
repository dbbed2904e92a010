//! Splits of an extent into nested loops.
//!
//! A value is a list of loop extents, outermost first, as in OpEvo section 3, equation 1 (the first
//! kind of parameter), FlexTensor section 4.2, and the G-BFS paper, section 2.3.
//!
//! In the papers the product is the extent ([`Splits::Divisible`]). Extents such as 509 or 7 then
//! have no useful tiles, so [`Splits::Covering`] also allows inner loops that do not divide it: the
//! outermost loop has enough iterations to cover the extent, and the schedule chooses a tail
//! strategy.

mod numbers;
mod stored;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use numbers::{at_most, enumerate, primes, sizes, with_small_primes};

/// The allowed splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Splits {
    /// Splits whose product is the extent.
    Divisible,
    /// Splits with inner loops of common sizes, whose outermost loop covers the extent.
    Covering,
}

/// The maximum number of values of a parameter; beyond it, the number of parts is reduced.
const MOST_VALUES: usize = 1 << 20;

/// The splits of an extent into parts.
///
/// Two splits are neighbours if a prime factor moves from one part to another, which for powers of
/// two is equation 6 of the G-BFS paper; with [`Splits::Covering`] also if an inner part changes to
/// the next smaller or larger size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "stored::Factorization")]
pub struct Factorization {
    extent: u64,
    parts: usize,
    splits: Splits,
    /// The candidate sizes of inner parts, in increasing order.
    sizes: Vec<u64>,
    primes: Vec<u64>,
    /// All values in lexicographic order.
    values: Vec<Box<[u64]>>,
}

impl Factorization {
    /// The splits of an extent (at least 1) into `parts` parts (at least 1), or fewer if there were
    /// too many to number.
    #[must_use]
    pub fn new(extent: u64, parts: usize, splits: Splits) -> Self {
        Self::filtered(extent, parts, splits, |_| true)
    }

    /// The splits whose parts satisfy a rule; the split without inner loops is always among them.
    #[must_use]
    pub fn filtered(
        extent: u64,
        parts: usize,
        splits: Splits,
        allow: impl Fn(&[u64]) -> bool,
    ) -> Self {
        let extent = extent.max(1);
        let primes = primes(extent);
        let sizes = sizes(extent, splits);
        let mut parts = parts.max(1);
        while parts > 1 && at_most(&sizes, parts - 1) > MOST_VALUES {
            parts -= 1;
        }
        let mut plain = vec![1; parts];
        plain[0] = extent;
        let mut values = BTreeSet::from([plain.clone().into_boxed_slice()]);
        let mut value = vec![1; parts];
        enumerate(&mut value, parts - 1, &sizes, extent, splits, &mut |value| {
            if allow(value) {
                values.insert(value.to_vec().into_boxed_slice());
            }
        });
        let values = values.into_iter().collect();
        let primes = match splits {
            Splits::Divisible => primes,
            Splits::Covering => with_small_primes(primes),
        };
        Self { extent, parts, splits, sizes, primes, values }
    }

    /// The extent that is split.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// The number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The allowed splits.
    #[must_use]
    pub fn splits(&self) -> Splits {
        self.splits
    }

    /// The parts of a value, outermost first.
    #[must_use]
    pub fn value(&self, rank: u32) -> &[u64] {
        self.values.get(rank as usize).unwrap_or(&self.values[0])
    }

    /// The rank of a value; `None` if it does not exist.
    #[must_use]
    pub fn rank(&self, value: &[u64]) -> Option<u32> {
        let place = self.values.binary_search_by(|other| other.as_ref().cmp(value)).ok()?;
        u32::try_from(place).ok()
    }

    /// The rank of the value with these inner parts; `None` if it does not exist.
    #[must_use]
    pub fn rank_of_inner(&self, inner: &[u64]) -> Option<u32> {
        let tile = inner.iter().try_fold(1u64, |product, part| product.checked_mul(*part))?;
        let mut value = vec![self.extent.div_ceil(tile.max(1))];
        value.extend(inner);
        self.rank(&value)
    }

    /// The rank of the unsplit value: where G-BFS and N-A2C start.
    #[must_use]
    pub fn plain(&self) -> u32 {
        let mut value = vec![1; self.parts];
        value[0] = self.extent;
        self.rank(&value).unwrap_or(0)
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.values.len() as u32
    }

    /// The number of directions: for every prime factor the ordered pairs of parts, then for every
    /// inner part down and up.
    pub(super) fn directions(&self) -> usize {
        let pairs = self.parts * (self.parts - 1);
        let rows = match self.splits {
            Splits::Divisible => 0,
            Splits::Covering => 2 * (self.parts - 1),
        };
        self.primes.len() * pairs + rows
    }

    pub(super) fn step(&self, rank: u32, direction: usize) -> Option<u32> {
        let pairs = self.parts * (self.parts - 1);
        let value = self.value(rank);
        if direction < self.primes.len() * pairs {
            let prime = self.primes[direction / pairs];
            let (from, to) = ordered_pair(direction % pairs, self.parts);
            return self.move_prime(value, prime, from, to);
        }
        let direction = direction - self.primes.len() * pairs;
        let (part, up) = (1 + direction / 2, direction % 2 == 1);
        let place = self.sizes.binary_search(value.get(part)?).ok()?;
        let place = if up { place + 1 } else { place.checked_sub(1)? };
        let mut inner = value[1..].to_vec();
        inner[part - 1] = *self.sizes.get(place)?;
        self.rank_of_inner(&inner)
    }

    fn move_prime(&self, value: &[u64], prime: u64, from: usize, to: usize) -> Option<u32> {
        let mut next = value.to_vec();
        // The outermost part of a covering split is determined by the others.
        let follows = self.splits == Splits::Covering;
        if !(follows && from == 0) {
            if !next[from].is_multiple_of(prime) {
                return None;
            }
            next[from] /= prime;
        }
        if !(follows && to == 0) {
            next[to] = next[to].checked_mul(prime)?;
        }
        if follows { self.rank_of_inner(&next[1..]) } else { self.rank(&next) }
    }

    pub(super) fn text(&self, rank: u32) -> String {
        let parts: Vec<String> = self.value(rank).iter().map(u64::to_string).collect();
        format!("[{}]", parts.join(","))
    }

    pub(super) fn features(&self, rank: u32, to: &mut Vec<f32>) {
        let value = self.value(rank);
        to.extend(value.iter().map(|part| (*part as f32).log2()));
        // The size of the tile at every level, and its padding.
        let mut tile = 1.0f32;
        for part in value[1..].iter().rev() {
            tile *= *part as f32;
            to.push(tile.log2());
        }
        to.push(value[0] as f32 * tile / self.extent as f32 - 1.0);
    }
}

/// The ordered pairs of different parts, numbered.
fn ordered_pair(number: usize, parts: usize) -> (usize, usize) {
    let (from, to) = (number / (parts - 1), number % (parts - 1));
    (from, if to >= from { to + 1 } else { to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisible_splits_are_those_of_the_papers() {
        // OpEvo figure 1a: C = 8, nu = 3 has ten vertices.
        let eight = Factorization::new(8, 3, Splits::Divisible);
        assert_eq!(eight.count(), 10);
        assert_eq!(eight.text(eight.plain()), "[8,1,1]");
        // The sizes that the G-BFS paper states for four parts.
        for (extent, count) in [(512, 220), (1024, 286), (2048, 364)] {
            assert_eq!(Factorization::new(extent, 4, Splits::Divisible).count(), count);
        }
        assert_eq!(Factorization::new(509, 3, Splits::Divisible).count(), 3);
    }

    #[test]
    fn covering_splits_tile_extents_that_have_no_divisors() {
        let odd = Factorization::new(509, 2, Splits::Covering);
        assert_eq!(odd.value(odd.rank_of_inner(&[16]).unwrap()), [32, 16]);
        assert!(odd.rank(&[31, 16]).is_none());
        let seven = Factorization::new(7, 2, Splits::Covering);
        let texts: Vec<String> = (0..seven.count()).map(|rank| seven.text(rank)).collect();
        assert_eq!(texts, ["[1,7]", "[1,8]", "[2,4]", "[2,5]", "[2,6]", "[3,3]", "[4,2]", "[7,1]"]);
    }

    #[test]
    fn many_parts_of_a_rich_extent_are_fewer() {
        let rich = Factorization::new(735_134_400, 4, Splits::Divisible);
        assert!(rich.parts() < 4);
        assert!(rich.count() > 1000);
        let one = Factorization::new(0, 0, Splits::Covering);
        assert_eq!((one.count(), one.parts()), (1, 1));
    }
}
