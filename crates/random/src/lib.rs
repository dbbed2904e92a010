//! Seeded random numbers, identical on every machine and in every version.
//!
//! Stored data refers to them: a search trace by its seed, a fuzzer case by the number of its
//! program, kernel inputs by a name and a seed. So both generators are ones that their authors have
//! fixed, and the way values are drawn from them is fixed here.

use rand_xoshiro::rand_core::{Rng as Generator, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// The generator of searches
pub type Rng = Random<Xoshiro256PlusPlus>;

/// The generator of models, generated programs and inputs (SplitMix64, Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014): one word of state, and any seed is a good
/// seed.
pub type SplitMix = Random<SplitMix64>;

/// Draws values from a generator.
///
/// ```
/// use tensorwright_random::Rng;
///
/// let mut rng = Rng::new(1);
/// let first = rng.below(100);
/// assert_eq!(Rng::new(1).below(100), first);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random<G> {
    generator: G,
}

/// The increment of SplitMix64's state.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix {
    /// The generator of one member of a numbered family, independent of its neighbours.
    #[must_use]
    pub fn of(seed: u64, index: u64) -> Self {
        let mut family = Self::new(seed);
        Self::new(family.next_u64() ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    /// The number at a position of the stream of a seed, in constant time: SplitMix64 is a counter
    /// and a mixing function.
    #[must_use]
    pub fn nth(seed: u64, place: u64) -> u64 {
        Self::new(seed.wrapping_add(place.wrapping_mul(GOLDEN_GAMMA))).next_u64()
    }
}

impl<G: SeedableRng + Generator> Random<G> {
    /// Creates the generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { generator: G::seed_from_u64(seed) }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number below `bound`, uniform; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's method: the high half of the product is uniform once short intervals are
        // rejected.
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A uniform position in a list of `len` elements; 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A uniform number in `lo..=hi`; `lo` if that is empty.
    pub fn range(&mut self, lo: i64, hi: i64) -> i64 {
        let count = hi.saturating_sub(lo).saturating_add(1).max(1);
        lo.saturating_add(self.below(count.unsigned_abs()) as i64)
    }

    /// A uniform number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.index(100) < percent
    }

    /// A uniformly chosen element; draws nothing if the list is empty.
    pub fn choose<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        if list.is_empty() { None } else { list.get(self.index(list.len())) }
    }

    /// A uniformly chosen element of a nonempty list.
    ///
    /// # Panics
    ///
    /// If the list is empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// A position drawn in proportion to a list of weights. Weights that are not positive count as
    /// 0; if all do, every position is equally likely.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let weight = |w: &f64| if w.is_finite() && *w > 0.0 { *w } else { 0.0 };
        let total: f64 = weights.iter().map(weight).sum();
        if total <= 0.0 {
            return self.index(weights.len());
        }
        let mut left = self.unit() * total;
        let mut last = 0;
        for (place, w) in weights.iter().map(weight).enumerate() {
            if w > 0.0 {
                last = place;
                if left < w {
                    break;
                }
                left -= w;
            }
        }
        last
    }

    /// Shuffles a list uniformly (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            list.swap(place, self.index(place + 1));
        }
    }

    /// Moves `count` randomly chosen elements to the front, in random order.
    pub fn choose_first<T>(&mut self, list: &mut [T], count: usize) {
        for place in 0..count.min(list.len()) {
            let other = place + self.index(list.len() - place);
            list.swap(place, other);
        }
    }

    /// Splits off an independent generator, so that a part that draws more or fewer numbers does
    /// not disturb the others.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_seed_and_spread_evenly() {
        let mut rng = Rng::new(1);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(
            first,
            [14_971_601_782_005_023_387, 13_781_649_495_232_077_965, 1_847_458_086_238_483_744]
        );
        let mut counts = [0u32; 6];
        (0..60_000).for_each(|_| counts[rng.below(6) as usize] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert!((0..1000).map(|_| rng.unit()).all(|x| (0.0..1.0).contains(&x)));
    }

    #[test]
    fn the_numbers_of_splitmix64_are_those_of_the_paper() {
        // The reference values for seed 1234567.
        let mut rng = SplitMix::new(1_234_567);
        let first =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([rng.next_u64(), rng.next_u64(), rng.next_u64()], first);
        let by_place = [0, 1, 2].map(|place| SplitMix::nth(1_234_567, place));
        assert_eq!(by_place, first);
        assert_eq!(SplitMix::nth(0, 0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn what_is_drawn_from_numbers_never_changes() {
        let mut rng = SplitMix::of(3, 5);
        assert_eq!(rng.next_u64(), 0x5d7e_1ad4_4178_623d);
        let drawn: Vec<u64> = [7, 100, 1 << 40].map(|bound| rng.below(bound)).to_vec();
        assert_eq!(drawn, [1, 73, 724_410_441_870]);
        let mut list: Vec<u32> = (0..8).collect();
        rng.shuffle(&mut list);
        assert_eq!(list, [5, 0, 4, 2, 1, 7, 6, 3]);
        rng.choose_first(&mut list, 3);
        assert_eq!(list[..3], [5, 7, 3]);
    }

    #[test]
    fn weights_decide() {
        let mut rng = Rng::new(2);
        let mut counts = [0u32; 4];
        (0..40_000).for_each(|_| counts[rng.weighted(&[1.0, 0.0, 3.0, f64::NAN])] += 1);
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!((9_500..10_500).contains(&counts[0]), "{counts:?}");
        assert!(rng.weighted(&[0.0, 0.0]) < 2);
    }

    #[test]
    fn numbers_stay_in_their_ranges_and_reach_the_ends() {
        let mut rng = SplitMix::new(1);
        let drawn: Vec<i64> = (0..1000).map(|_| rng.range(-3, 3)).collect();
        assert_eq!(drawn.iter().min(), Some(&-3));
        assert_eq!(drawn.iter().max(), Some(&3));
        assert_eq!(rng.index(0), 0);
        assert_eq!(rng.range(5, 4), 5);
        assert_eq!(rng.choose::<u8>(&[]), None);
    }

    #[test]
    fn a_shuffle_keeps_the_items() {
        let mut items: Vec<usize> = (0..20).collect();
        SplitMix::new(3).shuffle(&mut items);
        assert_ne!(items, (0..20).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..20).collect::<Vec<_>>());
    }
}
