//! Corrupts binary files: bit flips, boundary numbers, truncation and swapped pages.

use crate::Rng;

/// One kind of corruption.
type Damage = fn(&mut Vec<u8>, &mut Rng);

const ALL: &[Damage] = &[
    |bytes, rng| flip_bits(bytes, rng),
    |bytes, rng| overwrite_number(bytes, rng),
    |bytes, rng| fill_range(bytes, rng),
    |bytes, rng| swap_blocks(bytes, rng),
    cut,
    remove_range,
];

/// Corrupts a file in one to four places.
#[must_use]
pub fn damage(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=rng.index(4) {
        let damage = *rng.pick(ALL);
        damage(&mut damaged, rng);
    }
    damaged
}

/// A range of at most `most` bytes.
fn range(bytes: &[u8], most: usize, rng: &mut Rng) -> std::ops::Range<usize> {
    let start = rng.index(bytes.len());
    start..(start + 1 + rng.index(most)).min(bytes.len())
}

fn flip_bits(bytes: &mut [u8], rng: &mut Rng) {
    for _ in 0..=rng.index(8) {
        let place = rng.index(bytes.len());
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= 1 << rng.index(8);
        }
    }
}

fn overwrite_number(bytes: &mut [u8], rng: &mut Rng) {
    let number = *rng.pick(&[0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, u64::MAX]);
    let width = *rng.pick(&[1, 2, 4, 8]);
    let mut number = number.to_le_bytes();
    if rng.percent(50) {
        number[..width].reverse();
    }
    let place = range(bytes, 1, rng).start;
    bytes.iter_mut().skip(place).zip(&number[..width]).for_each(|(byte, new)| *byte = *new);
}

fn fill_range(bytes: &mut [u8], rng: &mut Rng) {
    let (place, value) = (range(bytes, 200, rng), *rng.pick(&[0, 0xff, b'9', b'\n']));
    bytes[place].fill(value);
}

fn cut(bytes: &mut Vec<u8>, rng: &mut Rng) {
    bytes.truncate(rng.index(bytes.len() + 1));
}

fn remove_range(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let place = range(bytes, 64, rng);
    bytes.drain(place);
}

/// Swaps two blocks of a power of two, which may be pages.
fn swap_blocks(bytes: &mut [u8], rng: &mut Rng) {
    let block = 1 << (4 + rng.index(9));
    let count = bytes.len() / block;
    if count > 1 {
        let (one, other) = (rng.index(count) * block, rng.index(count) * block);
        (0..block).for_each(|offset| bytes.swap(one + offset, other + offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_damaged_is_a_function_of_the_seed_and_mostly_changed() {
        let whole: Vec<u8> = (0..5000).map(|n| (n % 251) as u8).collect();
        for bytes in [&whole[..], &[7], &[]] {
            for seed in 0..300 {
                let once = damage(bytes, &mut Rng::new(seed));
                assert_eq!(once, damage(bytes, &mut Rng::new(seed)));
            }
        }
        let changed = (0..300).filter(|seed| damage(&whole, &mut Rng::new(*seed)) != whole).count();
        assert!(changed > 280, "{changed}");
    }
}
