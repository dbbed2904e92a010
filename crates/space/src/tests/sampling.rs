//! Tests that sampling is uniform, over all points and over legal ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::parameter::{Categorical, Discrete, Factorization, Permutation, Splits};
use crate::{Parameter, Point, Rejection, Rng, Rules, SearchSpace};

/// The tile and the unroll factor must not both be large.
#[derive(Debug)]
struct Small;

impl Rules for Small {
    fn check(&self, _: &[Parameter], point: &Point) -> Result<(), Rejection> {
        if point.rank(0) + 3 * point.rank(2) < 9 {
            return Ok(());
        }
        Err(Rejection { rule: "small", reason: "too large".to_owned() })
    }
}

fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::new("tile", Factorization::new(8, 3, Splits::Divisible)),
        Parameter::new("order", Permutation::new(["i", "j", "k"])),
        Parameter::new("unroll", Discrete::new([1, 2, 4])),
        Parameter::new("pack", Categorical::new(["no", "yes"])),
    ]
}

/// The deviation of counts from uniform ones, in standard deviations of the chi-square statistic.
fn unevenness(counts: &BTreeMap<Point, u32>, cells: usize) -> f64 {
    let total: f64 = counts.values().map(|count| f64::from(*count)).sum();
    let expected = total / cells as f64;
    let seen: f64 = counts.values().map(|count| (f64::from(*count) - expected).powi(2)).sum();
    let unseen = (cells - counts.len()) as f64 * expected * expected;
    let freedom = (cells - 1) as f64;
    ((seen + unseen) / expected - freedom) / (2.0 * freedom).sqrt()
}

fn draw(count: usize, mut next: impl FnMut() -> Point) -> BTreeMap<Point, u32> {
    let mut counts = BTreeMap::new();
    (0..count).for_each(|_| *counts.entry(next()).or_default() += 1);
    counts
}

#[test]
fn every_point_is_equally_likely() {
    let space = SearchSpace::new(parameters());
    let mut rng = Rng::new(11);
    let counts = draw(100_000, || space.sample(&mut rng));
    let unevenness = unevenness(&counts, space.points().count());
    assert!(unevenness.abs() < 4.0, "{unevenness}");
}

#[test]
fn every_legal_point_is_equally_likely() {
    let space = SearchSpace::with_rules(parameters(), Arc::new(Small));
    let legal = space.points().filter(|point| space.is_legal(point)).count();
    assert!(legal > 100 && legal < space.points().count() / 2 + 50);
    let mut rng = Rng::new(12);
    let counts = draw(100_000, || space.sample_legal(&mut rng).unwrap());
    assert!(counts.keys().all(|point| space.is_legal(point)));
    let unevenness = unevenness(&counts, legal);
    assert!(unevenness.abs() < 4.0, "{unevenness}");
}

#[test]
fn the_measure_of_unevenness_notices_what_is_uneven() {
    let space = SearchSpace::new(parameters());
    let mut rng = Rng::new(13);
    // The minimum of two samples is not uniform.
    let counts = draw(100_000, || space.sample(&mut rng).min(space.sample(&mut rng)));
    assert!(unevenness(&counts, space.points().count()) > 100.0);
}
