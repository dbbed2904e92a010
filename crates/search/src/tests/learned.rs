//! Tests of learning strategies on synthetic landscapes.

#[path = "support/landscape.rs"]
mod landscape;

use std::collections::HashSet;
use std::sync::Arc;

use crate::{Observation, Proposal, SearchStrategy, StrategySettings, find};
use tensorwright_outcome::{Outcome, Timing};
use tensorwright_space::{Point, Rng, SearchSpace};

const LEARNED: [&str; 4] = ["p-method", "q-method", "n-a2c", "surrogate"];

fn start(name: &str, space: &Arc<SearchSpace>, seed: u64) -> Box<dyn SearchStrategy> {
    let settings = StrategySettings { seed, ..StrategySettings::default() };
    find(name).expect(name).start(space.clone(), &settings)
}

fn observe(space: &SearchSpace, point: Point) -> Observation {
    Observation { outcome: landscape::outcome(space, &point), point }
}

/// Runs a strategy for a number of trials, in batches of changing size whose results arrive out of
/// order; returns the points in order of proposal.
fn run(strategy: &mut dyn SearchStrategy, space: &SearchSpace, trials: usize) -> Vec<Point> {
    let mut rng = Rng::new(99);
    let (mut proposed, mut out) = (Vec::new(), Vec::new());
    while proposed.len() < trials {
        let at_most = (1 + rng.index(6)).min(trials - proposed.len());
        match strategy.propose(at_most) {
            Proposal::Points(points) => {
                assert!(!points.is_empty() && points.len() <= at_most);
                proposed.extend(points.iter().cloned());
                out.extend(points);
            }
            Proposal::Wait => assert!(!out.is_empty(), "waits for nothing"),
            Proposal::Exhausted => break,
        }
        rng.shuffle(&mut out);
        let back = out.split_off(rng.index(out.len() + 1).min(4));
        let back: Vec<Observation> = back.into_iter().map(|point| observe(space, point)).collect();
        strategy.observe(&back);
    }
    proposed
}

fn best(space: &SearchSpace, points: &[Point]) -> f64 {
    let costs = points.iter().filter_map(|point| landscape::outcome(space, point).cost());
    costs.fold(f64::INFINITY, f64::min)
}

#[test]
fn a_seed_determines_the_trace() {
    let space = landscape::space(256);
    for name in LEARNED {
        let trace = |seed| run(start(name, &space, seed).as_mut(), &space, 90);
        let first = trace(1);
        assert!(first == trace(1), "{name} differs from itself");
        assert!(first != trace(2), "{name} does not use its seed");
    }
}

#[test]
fn points_are_legal_and_proposed_once() {
    let space = landscape::space(256);
    for name in LEARNED {
        let points = run(start(name, &space, 3).as_mut(), &space, 120);
        assert_eq!(points.len(), 120, "{name}");
        assert!(points.iter().all(|point| space.is_legal(point)), "{name}");
        assert_eq!(points.iter().collect::<HashSet<_>>().len(), 120, "{name}");
    }
}

#[test]
fn small_spaces_are_exhausted() {
    let space = landscape::small_space();
    let size = space.points().count();
    assert_eq!(size, 288);
    let optimum = best(&space, &space.points().collect::<Vec<_>>());
    for name in LEARNED {
        let mut strategy = start(name, &space, 4);
        let points = run(strategy.as_mut(), &space, size + 1);
        assert_eq!(points.len(), size, "{name}");
        assert_eq!(points.iter().collect::<HashSet<_>>().len(), size, "{name}");
        assert_eq!(best(&space, &points), optimum, "{name}");
        assert_eq!(strategy.propose(1), Proposal::Exhausted, "{name}");
    }
}

/// On a small space the optimum is found long before the space is exhausted.
#[test]
fn the_optimum_of_a_small_landscape_is_found() {
    let space = landscape::small_space();
    let optimum = best(&space, &space.points().collect::<Vec<_>>());
    for name in LEARNED {
        let found = (0..5).filter(|seed| {
            let points = run(start(name, &space, *seed).as_mut(), &space, 140);
            best(&space, &points) == optimum
        });
        let found = found.count();
        assert!(found >= 3, "{name} found it {found} times of 5");
    }
}

/// On a large one, 200 trials get closer to it than as many random ones.
#[test]
fn learning_beats_chance() {
    let space = landscape::space(256);
    let median = |name: &str| {
        let mut costs: Vec<f64> = (0..3)
            .map(|seed| best(&space, &run(start(name, &space, seed).as_mut(), &space, 200)))
            .collect();
        costs.sort_by(f64::total_cmp);
        costs[1]
    };
    let random = median("random");
    for name in LEARNED {
        let learned = median(name);
        println!("{name}: {:.3} ms, random {:.3} ms", 1e3 * learned, 1e3 * random);
        assert!(learned < random, "{name}: {learned}, random: {random}");
    }
}

#[test]
fn nothing_but_failures_is_no_trouble() {
    let space = landscape::small_space();
    let reason = "made up".to_owned();
    for outcome in [Outcome::BuildFailed { reason }, Outcome::DeviceLost] {
        for name in LEARNED {
            let mut strategy = start(name, &space, 5);
            let mut count = 0;
            while let Proposal::Points(points) = strategy.propose(7) {
                count += points.len();
                let fail = |point| Observation { point, outcome: outcome.clone() };
                strategy.observe(&points.into_iter().map(fail).collect::<Vec<_>>());
            }
            assert_eq!(count, 288, "{name}");
        }
    }
}

/// Strategies learn from results of others, do not propose their points again, and ignore points
/// from another space.
#[test]
fn what_others_saw_is_taken_in() {
    let space = landscape::space(256);
    let mut rng = Rng::new(6);
    let others: Vec<Point> = (0..150).filter_map(|_| space.sample_legal(&mut rng)).collect();
    for name in LEARNED {
        let mut strategy = start(name, &space, 7);
        let told = others.iter().map(|point| observe(&space, point.clone()));
        strategy.observe(&told.collect::<Vec<_>>());
        // It looks better than all others.
        let timing = Timing { seconds: 1e-9, ..Timing::default() };
        let outcome = Outcome::Measured(timing);
        strategy.observe(&[Observation { point: Point::new([9_999_999]), outcome }]);
        let points = run(strategy.as_mut(), &space, 60);
        assert!(points.iter().all(|point| !others.contains(point)), "{name}");
    }
}

#[test]
fn given_points_come_first() {
    let space = landscape::space(256);
    let mut rng = Rng::new(8);
    let given: Vec<Point> = (0..3).filter_map(|_| space.sample_legal(&mut rng)).collect();
    let mut start = vec![Point::new([1, 2])];
    start.extend(given.iter().cloned());
    for name in LEARNED {
        let settings = StrategySettings { seed: 9, start: start.clone() };
        let mut strategy = find(name).unwrap().start(space.clone(), &settings);
        assert_eq!(strategy.propose(3), Proposal::Points(given.clone()), "{name}");
    }
}
