//! From the ranks of parameters to values and back.

use tensorwright_space::parameter::Domain;

/// The place of a choice; the first if there is none.
pub(crate) fn rank_of<T: PartialEq>(choices: &[T], value: &T) -> u32 {
    choices.iter().position(|choice| choice == value).unwrap_or(0) as u32
}

/// The number of a rank.
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

/// The rank of the parts of a split; that of the whole loop if there are no such parts.
pub(crate) fn rank_of_parts(domain: &Domain, parts: &[i64]) -> u32 {
    let Domain::Factorization(tile) = domain else { return 0 };
    let parts: Vec<u64> = parts.iter().map(|part| part.cast_unsigned()).collect();
    tile.rank(&parts).unwrap_or_else(|| tile.plain())
}
