//! Conversion between ranks and values of parameters.

use tensorwright_space::parameter::Domain;

/// The rank of a choice; the first if it does not exist.
pub(crate) fn rank_of<T: PartialEq>(choices: &[T], value: &T) -> u32 {
    choices.iter().position(|choice| choice == value).unwrap_or(0) as u32
}

/// The number with a rank.
pub(crate) fn number(domain: &Domain, rank: u32, otherwise: i64) -> i64 {
    match domain {
        Domain::Discrete(numbers) => numbers.value(rank),
        _ => otherwise,
    }
}

/// The rank of a number.
pub(crate) fn rank_of_number(domain: &Domain, number: i64) -> u32 {
    match domain {
        Domain::Discrete(numbers) => rank_of(numbers.values(), &number),
        _ => 0,
    }
}

/// The rank of the parts of a split; that of the unsplit loop if they do not exist.
pub(crate) fn rank_of_parts(domain: &Domain, parts: &[i64]) -> u32 {
    let Domain::Factorization(tile) = domain else { return 0 };
    let parts: Vec<u64> = parts.iter().map(|part| part.cast_unsigned()).collect();
    tile.rank(&parts).unwrap_or_else(|| tile.plain())
}
