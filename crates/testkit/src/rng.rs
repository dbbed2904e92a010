//! A small random number generator whose sequence never changes between versions or machines.

/// Splitmix64 (Steele, Lea, Flood 2014): one word of state, and any seed is a good seed.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The generator of one member of a numbered family: independent of its neighbours.
    #[must_use]
    pub fn of(seed: u64, index: u64) -> Self {
        let mut family = Self::new(seed);
        Self::new(family.next_u64() ^ index.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        // The high half of a product is as uniform as the bits are, and cheaper than a remainder.
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// A number in `lo..=hi`; `lo` if that is empty.
    pub fn range(&mut self, lo: i64, hi: i64) -> i64 {
        let span = hi.saturating_sub(lo).saturating_add(1).max(1);
        lo.saturating_add(self.below(span as usize) as i64)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Puts the items into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_paper() {
        // The reference values for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_in_their_ranges_and_reach_the_ends() {
        let mut rng = Rng::new(1);
        let drawn: Vec<i64> = (0..1000).map(|_| rng.range(-3, 3)).collect();
        assert_eq!(drawn.iter().min(), Some(&-3));
        assert_eq!(drawn.iter().max(), Some(&3));
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.range(5, 4), 5);
    }

    #[test]
    fn a_shuffle_keeps_the_items() {
        let mut items: Vec<usize> = (0..20).collect();
        Rng::new(3).shuffle(&mut items);
        assert_ne!(items, (0..20).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..20).collect::<Vec<_>>());
    }
}
