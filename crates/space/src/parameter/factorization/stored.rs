//! The serialized form of [`super::Factorization`], with validation.

use serde::Deserialize;

use super::{MOST_VALUES, Splits};

/// The maximum number of parts in a file.
const MOST_PARTS: usize = 16;

/// An upper bound on the number of primes of a 64-bit number.
const MOST_PRIMES: usize = 16;

/// The fields of a [`super::Factorization`].
#[derive(Deserialize)]
pub(super) struct Factorization {
    extent: u64,
    parts: usize,
    splits: Splits,
    sizes: Vec<u64>,
    primes: Vec<u64>,
    values: Vec<Box<[u64]>>,
}

impl TryFrom<Factorization> for super::Factorization {
    type Error = String;

    fn try_from(stored: Factorization) -> Result<Self, String> {
        let Factorization { extent, parts, splits, sizes, primes, values } = stored;
        let increasing = |list: &[u64]| list.is_sorted_by(|a, b| a < b);
        if extent == 0 || parts == 0 || parts > MOST_PARTS {
            return Err(format!("a split of {extent} into {parts} parts"));
        }
        if !increasing(&sizes) || !increasing(&primes) || primes.len() > MOST_PRIMES {
            return Err(format!("a split of {extent} with sizes or primes that are out of order"));
        }
        if values.is_empty() || values.len() > MOST_VALUES || !values.is_sorted_by(|a, b| a < b) {
            return Err(format!(
                "a split of {extent} with none or too many values, or out of order"
            ));
        }
        if let Some(value) = values.iter().find(|value| !splits_so(extent, parts, splits, value)) {
            return Err(format!("{value:?} does not split {extent} into {parts} parts"));
        }
        Ok(Self { extent, parts, splits, sizes, primes, values })
    }
}

/// Whether a value is a legal split of an extent.
fn splits_so(extent: u64, parts: usize, splits: Splits, value: &[u64]) -> bool {
    let [outermost, inner @ ..] = value else { return false };
    let tile = inner.iter().try_fold(1u64, |product, part| product.checked_mul(*part));
    let Some(tile) = tile.filter(|tile| *tile > 0) else { return false };
    value.len() == parts
        && *outermost == extent.div_ceil(tile)
        && (splits == Splits::Covering || extent.is_multiple_of(tile))
}
