//! Measures the costs of pieces in the first calls that use them.
//!
//! ```text
//! N = 1000, 768 + 256     768 and 256 in turns, 25 times: 59 us, 21 us
//! N = 1030, 1024 + 6      1024 and 6 in turns; both together cost what is estimated, so it is only their ratio that counts
//! N = 1100, 1024 + 96     1024 and 96 in turns; 96 was not measured, 1024 was, which says how fast the machine is now
//! ```
//!
//! Pieces of one call are measured in turns, on its own tensors, which are rewritten with the same
//! values. A price is relative to the current cost of another piece of the call, so prices from
//! different times are comparable. The median of three measurements rejects a disturbed one. A call
//! whose pieces are no longer the cheapest is planned again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::{Prices, pieces};

/// How often a length is measured.
const OCCASIONS: usize = 3;

/// The least and the most rounds per measurement, after a warm-up.
const ROUNDS: (usize, usize) = (6, 50);

/// After this time, no optional round starts.
const ENOUGH: Duration = Duration::from_millis(2);

/// After this time, no round starts.
const LONGEST: Duration = Duration::from_millis(10);

/// Pieces replace others if their cost is below this share.
const WORTHWHILE: f64 = 0.95;

/// An estimated cost of pieces in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Guess {
    /// The cost per call.
    pub call: f64,
    /// The cost per step along the size.
    pub step: f64,
}

impl Guess {
    fn of(&self, length: i64) -> f64 {
        self.call + self.step * length as f64
    }
}

/// The costs of pieces of a size, by length.
#[derive(Debug)]
pub struct Pricing {
    guess: Guess,
    known: Mutex<MeasuredCosts>,
    /// A counter of price changes.
    changes: AtomicU64,
    /// Held while pieces are measured.
    measuring: Mutex<()>,
}

impl Pricing {
    /// Starts with estimated prices.
    #[must_use]
    pub fn new(guess: Guess) -> Self {
        Self {
            guess,
            known: Mutex::default(),
            changes: AtomicU64::new(0),
            measuring: Mutex::default(),
        }
    }

    /// Prices are valid after every statement, so a panic leaves them valid.
    fn known(&self) -> MutexGuard<'_, MeasuredCosts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn cheapest(&self, value: i64) -> Vec<(i64, i64)> {
        let prices = &self.known().prices;
        pieces(value, |length| self.price(prices, length))
    }

    fn cost(&self, places: &[(i64, i64)]) -> f64 {
        let prices = &self.known().prices;
        places.iter().map(|(_, length)| self.price(prices, *length)).sum()
    }

    /// The cost of a piece in nanoseconds.
    fn price(&self, prices: &Prices, length: i64) -> f64 {
        prices.of(length, |length| self.guess.of(length))
    }

    /// Adds the times of the pieces of one call, in nanoseconds.
    fn learn(&self, times: &[(i64, f64)]) {
        let mut known = self.known();
        let estimate: f64 =
            times.iter().map(|(length, _)| self.price(&known.prices, *length)).sum();
        let together: f64 = times.iter().map(|(_, time)| time).sum();
        let rough = if known.prices.is_empty() { 1.0 } else { estimate / together };
        let cost = |(length, time): &(i64, f64)| {
            known.scale(*length, times, rough).map(|scale| (*length, time * scale))
        };
        let costs: Vec<(i64, f64)> = times.iter().filter_map(cost).collect();
        for (length, cost) in costs {
            if known.add(length, cost) {
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Measured costs of pieces.
#[derive(Debug, Default)]
struct MeasuredCosts {
    /// All measurements by length, in ascending order.
    occasions: BTreeMap<i64, Vec<f64>>,
    /// The medians.
    prices: Prices,
}

impl MeasuredCosts {
    fn count(&self, length: i64) -> usize {
        self.occasions.get(&length).map_or(0, Vec::len)
    }

    /// The factor that makes times of one call comparable with those of other calls. It follows
    /// from the most measured other piece, if that has at least as many measurements as this one;
    /// `rough` if there are no measurements.
    fn scale(&self, length: i64, times: &[(i64, f64)], rough: f64) -> Option<f64> {
        let others = times.iter().filter(|(other, _)| *other != length);
        let best = others.max_by_key(|(other, _)| (self.count(*other), *other));
        match best {
            _ if times.iter().all(|(any, _)| self.count(*any) == 0) => Some(rough),
            Some((best, time)) if self.count(*best) >= self.count(length) => {
                self.prices.measured(*best).map(|cost| cost / time)
            }
            _ => None,
        }
    }

    /// Whether a length has enough measurements.
    fn is_enough(&self, length: i64) -> bool {
        self.count(length) >= OCCASIONS
    }

    /// Adds a measurement; returns whether it was needed.
    fn add(&mut self, length: i64, cost: f64) -> bool {
        if self.is_enough(length) {
            return false;
        }
        let all = self.occasions.entry(length).or_default();
        all.insert(all.partition_point(|other| *other < cost), cost);
        self.prices.measure(length, all[(all.len() - 1) / 2]);
        true
    }
}

/// The pieces of a size, the cheapest ones by current knowledge.
///
/// ```
/// use std::sync::Arc;
/// use tensorwright_package::buckets::{Guess, Pieces, Pricing};
///
/// let pricing = Arc::new(Pricing::new(Guess { call: 1000.0, step: 100.0 }));
/// let pieces = Pieces::new("N".to_owned(), 1000, pricing);
/// let mut covered = 0;
/// pieces.call(|number| {
///     let (start, length) = pieces.places().nth(number).ok_or("no such piece")?;
///     covered = covered.max(start + length); // call a kernel for `length` rows on those from `start` on
///     Ok::<_, &str>(())
/// })?;
/// assert_eq!(covered, 1000);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Pieces {
    name: String,
    value: i64,
    pricing: Arc<Pricing>,
    /// The start and the length of each piece.
    places: Vec<(i64, i64)>,
    /// Whether a call has to measure them.
    is_unpriced: AtomicBool,
    /// The price version at the last comparison, and whether these pieces were the cheapest.
    checked: AtomicU64,
    were_cheapest: AtomicBool,
}

impl Pieces {
    /// The cheapest pieces of a size by current knowledge.
    #[must_use]
    pub fn new(name: String, value: i64, pricing: Arc<Pricing>) -> Self {
        let checked = AtomicU64::new(pricing.changes());
        let places = pricing.cheapest(value);
        let known = pricing.known();
        let lacks = places.iter().any(|(_, length)| !known.is_enough(*length));
        // A single length has nothing to compare with.
        let is_alone = places.iter().all(|(_, length)| *length == places[0].1);
        let is_unpriced = lacks && (!is_alone || known.prices.is_empty());
        drop(known);
        let (is_unpriced, were_cheapest) = (is_unpriced.into(), true.into());
        Self { name, value, pricing, places, is_unpriced, checked, were_cheapest }
    }

    /// The start and the length of each piece.
    pub fn places(&self) -> impl Iterator<Item = (i64, i64)> {
        self.places.iter().copied()
    }

    /// Whether no other pieces are known to be much cheaper.
    #[must_use]
    pub fn are_cheapest(&self) -> bool {
        let now = self.pricing.changes();
        if now == self.checked.load(Ordering::Relaxed) {
            return self.were_cheapest.load(Ordering::Relaxed);
        }
        let best = self.pricing.cheapest(self.value);
        let are_cheapest = best == self.places
            || self.pricing.cost(&best) >= WORTHWHILE * self.pricing.cost(&self.places);
        self.were_cheapest.store(are_cheapest, Ordering::Relaxed);
        self.checked.store(now, Ordering::Relaxed);
        are_cheapest
    }

    /// Whether the next call measures.
    #[must_use]
    pub fn is_unpriced(&self) -> bool {
        self.is_unpriced.load(Ordering::Relaxed)
    }

    /// Calls all pieces, by number. The first call measures them, unless another thread measures or
    /// enough is known: it calls each several times, so calls must be idempotent.
    ///
    /// # Errors
    /// The error of the first failing call.
    pub fn call<E>(&self, mut call: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        if self.is_unpriced() {
            let one = match self.pricing.measuring.try_lock() {
                Ok(one) => Some(one),
                Err(TryLockError::Poisoned(one)) => Some(one.into_inner()),
                // Concurrent measurements would be useless.
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(_one) = one {
                return self.measure(call);
            }
        }
        (0..self.places.len()).try_for_each(&mut call)
    }

    fn measure<E>(&self, mut call: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        let mut least = vec![f64::INFINITY; self.places.len()];
        let (mut rounds, begun) = (0, Instant::now());
        for round in 0..=ROUNDS.1 {
            for (number, least) in least.iter_mut().enumerate() {
                let start = Instant::now();
                call(number)?;
                // The clock may be too coarse.
                let time = (start.elapsed().as_nanos() as f64).max(1.0);
                *least = if round == 1 { time } else { least.min(time) };
            }
            rounds = round;
            if begun.elapsed() > if round < ROUNDS.0 { LONGEST } else { ENOUGH } {
                break;
            }
        }
        self.is_unpriced.store(false, Ordering::Relaxed);
        if rounds == 0 {
            // A long call with cold memory and code counts as warm-up.
            return Ok(());
        }
        let mut times = BTreeMap::new();
        for ((_, length), time) in self.places.iter().zip(least) {
            let least = times.entry(*length).or_insert(time);
            *least = time.min(*least);
        }
        self.pricing.learn(&times.into_iter().collect::<Vec<_>>());
        Ok(())
    }
}

impl fmt::Display for Pieces {
    /// `N = 1000 in pieces: 768 (12.1 us) + 256 (about 4.4 us)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} in pieces: ", self.name, self.value)?;
        let prices = &self.pricing.known().prices;
        for (number, (_, length)) in self.places.iter().enumerate() {
            let plus = if number > 0 { " + " } else { "" };
            let about = if prices.measured(*length).is_none() { "about " } else { "" };
            let us = self.pricing.price(prices, *length) / 1e3;
            write!(f, "{plus}{length} ({about}{us:.1} us)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn pricing() -> Arc<Pricing> {
        Arc::new(Pricing::new(Guess { call: 5000.0, step: 100.0 }))
    }

    fn of(value: i64, pricing: &Arc<Pricing>) -> Pieces {
        Pieces::new("N".to_owned(), value, Arc::clone(pricing))
    }

    fn price(pricing: &Pricing, length: i64) -> Option<f64> {
        pricing.known().prices.measured(length)
    }

    #[test]
    fn pieces_follow_what_was_measured() {
        let pricing = pricing();
        let pieces = of(1000, &pricing);
        let text = "N = 1000 in pieces: 768 (about 81.8 us) + 256 (about 30.6 us)";
        assert_eq!(pieces.to_string(), text);
        // As estimated: nothing changes.
        pricing.learn(&[(768, 80_000.0), (256, 30_000.0)]);
        assert!(pieces.are_cheapest());
        assert_eq!(pieces.to_string(), "N = 1000 in pieces: 768 (80.0 us) + 256 (30.0 us)");
        // The machine is at half its speed, and 512 at a fifth.
        let others = of(750, &pricing);
        assert_eq!(others.places().next(), Some((0, 512)));
        pricing.learn(&[(512, 500_000.0), (256, 60_000.0)]);
        assert_eq!(price(&pricing, 512), Some(250_000.0));
        assert!(pieces.are_cheapest() && !others.are_cheapest() && !others.are_cheapest());
        assert!(!of(750, &pricing).places().any(|(_, length)| length == 512));
        // A disturbance, which two others outvote. More are not needed.
        pricing.learn(&[(512, 55_000.0), (256, 30_000.0)]);
        pricing.learn(&[(512, 56_000.0), (256, 30_000.0)]);
        pricing.learn(&[(512, 1.0), (256, 30_000.0)]);
        assert_eq!(price(&pricing, 512), Some(56_000.0));
        assert!(others.are_cheapest());
    }

    #[test]
    fn first_calls_measure() {
        let pricing = pricing();
        let pieces = of(1000, &pricing);
        let mut calls = [0; 2];
        for _ in 0..2 {
            let count = |number: usize| {
                calls[number] += 1;
                std::thread::sleep(Duration::from_micros(if number == 0 { 300 } else { 100 }));
                Ok::<_, Infallible>(())
            };
            pieces.call(count).unwrap();
        }
        // Once to warm up, and once more without measuring.
        let (least, most) = (1 + 1 + 1, 1 + ROUNDS.1 + 1);
        assert!(calls[0] == calls[1] && (least..=most).contains(&calls[0]), "{calls:?}");
        let cost = |length| price(&pricing, length).unwrap();
        assert!(cost(768) >= 300_000.0 && cost(256) >= 100_000.0);
        for occasion in 1..=OCCASIONS {
            assert_eq!(pricing.known().is_enough(768), occasion == OCCASIONS);
            pricing.learn(&[(768, 300_000.0), (256, 100_000.0)]);
        }
    }

    #[test]
    fn calls_that_share_no_piece_teach_ratios() {
        let pricing = pricing();
        pricing.learn(&[(1, 10_000.0)]);
        // Half as fast as the estimates, which follow from the piece of 1: together they cost these.
        let estimates: f64 = [768, 256].map(|length| pricing.cost(&[(0, length)])).iter().sum();
        pricing.learn(&[(768, 1.5 * estimates), (256, 0.5 * estimates)]);
        let cost = |length| price(&pricing, length).unwrap();
        assert!((cost(768) - 0.75 * estimates).abs() < 1e-6 * estimates);
        assert!((cost(256) - 0.25 * estimates).abs() < 1e-6 * estimates);
        // A single length adds no information.
        assert!(!of(1, &pricing).is_unpriced());
    }

    #[test]
    fn long_calls_are_not_repeated_and_failures_are_those_of_the_call() {
        let pieces = of(1000, &pricing());
        assert_eq!(pieces.call(|number| if number == 0 { Ok(()) } else { Err("no") }), Err("no"));
        let mut calls = 0;
        let long = |_| {
            calls += 1;
            std::thread::sleep(LONGEST);
            Ok::<_, Infallible>(())
        };
        pieces.call(long).unwrap();
        assert_eq!(calls, 2);
    }
}
