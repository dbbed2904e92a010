//! Number theory of splits: primes, sizes, and enumeration.

use std::collections::BTreeSet;

use super::Splits;

/// Covering splits may have inner extents of these numbers times a power of two.
const COMMON: [u64; 4] = [1, 3, 5, 7];

/// All lists of legal inner sizes.
pub(super) fn enumerate(
    value: &mut [u64],
    part: usize,
    sizes: &[u64],
    extent: u64,
    splits: Splits,
    found: &mut impl FnMut(&[u64]),
) {
    if part == 0 {
        let tile: u64 = value[1..].iter().product();
        value[0] = extent.div_ceil(tile);
        if splits == Splits::Covering || extent.is_multiple_of(tile) {
            found(value);
        }
        return;
    }
    let limit = largest_tile(extent, splits);
    let inner: u64 = value[part + 1..].iter().product();
    for size in sizes {
        if inner.saturating_mul(*size) > limit {
            break;
        }
        if splits == Splits::Divisible && !extent.is_multiple_of(inner * size) {
            continue;
        }
        value[part] = *size;
        enumerate(value, part - 1, sizes, extent, splits, found);
    }
    value[part] = 1;
}

/// A tile may be larger than an extent that is not a power of two: vectors are padded.
fn largest_tile(extent: u64, splits: Splits) -> u64 {
    match splits {
        Splits::Divisible => extent,
        Splits::Covering => extent.checked_next_power_of_two().unwrap_or(extent),
    }
}

/// An upper bound on the number of splits with `inner` inner parts.
pub(super) fn at_most(sizes: &[u64], inner: usize) -> usize {
    sizes.len().checked_pow(inner as u32).unwrap_or(usize::MAX)
}

/// The candidate sizes of inner parts.
pub(super) fn sizes(extent: u64, splits: Splits) -> Vec<u64> {
    let mut sizes: BTreeSet<u64> = BTreeSet::new();
    let mut divisor = 1;
    while divisor <= extent / divisor && divisor < 1 << 20 {
        if extent.is_multiple_of(divisor) {
            sizes.extend([divisor, extent / divisor]);
        }
        divisor += 1;
    }
    if splits == Splits::Covering {
        let limit = largest_tile(extent, splits);
        for odd in COMMON {
            let mut size = odd;
            // Odd multiples are for register tiles; powers of two suffice for cache tiles.
            while size <= limit && (odd == 1 || size <= 28 * odd) {
                sizes.insert(size);
                size *= 2;
            }
        }
    }
    sizes.into_iter().collect()
}

/// The distinct prime factors in increasing order, up to a million: no loop is split by larger
/// ones.
pub(super) fn primes(extent: u64) -> Vec<u64> {
    let mut rest = extent;
    let mut primes = Vec::new();
    let mut prime = 2;
    while prime <= rest / prime && prime < 1 << 20 {
        if rest.is_multiple_of(prime) {
            primes.push(prime);
            while rest.is_multiple_of(prime) {
                rest /= prime;
            }
        }
        prime += 1;
    }
    if rest > 1 {
        primes.push(rest);
    }
    primes
}

/// Covering splits always allow factors of two and three.
pub(super) fn with_small_primes(mut primes: Vec<u64>) -> Vec<u64> {
    primes.extend([2, 3]);
    primes.sort_unstable();
    primes.dedup();
    primes.retain(|prime| *prime <= 7);
    primes
}
