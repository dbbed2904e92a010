//! [`Rng`]: random numbers that depend on a seed alone.

/// A random number generator (xoshiro256++, Blackman and Vigna 2019). The same seed gives the same
/// numbers on every machine and in every version: recorded traces depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // SplitMix64 spreads the seed over the state, as the authors advise.
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self { state: [next(), next(), next(), next()] }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let [mut a, mut b, mut c, mut d] = [a, b, c ^ a, d ^ b];
        let shifted = self.state[1] << 17;
        b ^= c;
        a ^= d;
        c ^= shifted;
        d = d.rotate_left(45);
        self.state = [a, b, c, d];
        result
    }

    /// A number below `bound`, each equally likely; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Lemire's method: the product's high half is uniform once short intervals are refused.
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A position in a list of `len`; 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number of [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with a probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of a list, each equally likely.
    pub fn choose<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.index(list.len()))
    }

    /// The position of one of a list of weights, likely in proportion to them. Weights that are not
    /// positive numbers count as 0; if all do, every position is equally likely.
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

    /// Brings a list into a random order, each equally likely.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            list.swap(place, self.index(place + 1));
        }
    }

    /// A generator of its own, for a part that may draw more or fewer numbers without disturbing
    /// the others.
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
    fn weights_decide() {
        let mut rng = Rng::new(2);
        let mut counts = [0u32; 4];
        (0..40_000).for_each(|_| counts[rng.weighted(&[1.0, 0.0, 3.0, f64::NAN])] += 1);
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!((9_500..10_500).contains(&counts[0]), "{counts:?}");
        assert!(rng.weighted(&[0.0, 0.0]) < 2);
    }
}
