//! Tests of the contract of all registered strategies.

use std::collections::HashSet;
use std::sync::Arc;

use crate::registry::STRATEGIES;
use crate::{Observation, Proposal, SearchStrategy, Strategy, StrategySettings};
use tensorwright_outcome::{Outcome, Phase, Timing};
use tensorwright_space::parameter::{Categorical, Discrete, Factorization, Permutation, Splits};
use tensorwright_space::{Domain, Parameter, Point, Rejection, Rng, Rules, SearchSpace};

/// Rejects a third of the points, including the untiled one.
#[derive(Debug)]
struct Picky;

impl Rules for Picky {
    fn check(&self, _: &[Parameter], point: &Point) -> Result<(), Rejection> {
        if point.ranks().iter().sum::<u32>() % 3 != 0 {
            return Ok(());
        }
        Err(Rejection { rule: "picky", reason: "the sum of the ranks".to_owned() })
    }
}

fn parameters(extent: u64) -> Vec<Parameter> {
    vec![
        Parameter::new("m", Factorization::new(extent, 3, Splits::Divisible)),
        Parameter::new("n", Factorization::new(extent - 1, 2, Splits::Covering)),
        Parameter::new("order", Permutation::new(["i", "j", "k"])),
        Parameter::new("unroll", Discrete::new([1, 2, 4])),
        Parameter::new("pack", Categorical::new(["no", "yes"])),
    ]
}

/// About 1,800 points.
fn space() -> Arc<SearchSpace> {
    Arc::new(SearchSpace::with_rules(parameters(16), Arc::new(Picky)))
}

/// A bowl with its minimum at one point, with suitable distances per kind of parameter.
fn bowl(space: &SearchSpace, point: &Point) -> f64 {
    let tile = |place: usize| match space.parameters()[place].domain() {
        Domain::Factorization(splits) => {
            splits.value(point.rank(place))[1..].iter().map(|x| (*x as f64).log2()).collect()
        }
        _ => Vec::new(),
    };
    let m: f64 = tile(0).iter().zip([2.0, 1.0]).map(|(x, y): (&f64, f64)| (x - y).abs()).sum();
    let n: f64 = tile(1).iter().map(|x: &f64| (x - 2.0).abs()).sum();
    let rest = f64::from(point.rank(2) % 3) + f64::from(point.rank(3).abs_diff(1));
    1e-3 * (1.0 + m + n + rest + f64::from(point.rank(4)))
}

fn measured(seconds: f64) -> Outcome {
    Outcome::Measured(Timing { seconds, ..Timing::default() })
}

/// All kinds of outcomes, and invalid times.
fn anything(rng: &mut Rng) -> Outcome {
    match rng.index(10) {
        0 => Outcome::Illegal { rule: "r".into(), reason: "x".into() },
        1 => Outcome::BuildFailed { reason: "x".into() },
        2 => Outcome::WrongResult { reason: "x".into() },
        3 => Outcome::Crashed { reason: "x".into(), stderr: String::new() },
        4 => Outcome::TimedOut { phase: Phase::Time, limit: 1.0 },
        5 => Outcome::DeviceLost,
        6 => measured([0.0, f64::NAN, f64::INFINITY, -1.0, 1e-300, 1e300][rng.index(6)]),
        _ => measured(1e-3 * (1.0 + rng.unit())),
    }
}

fn start(strategy: &Strategy, space: &Arc<SearchSpace>, seed: u64) -> Box<dyn SearchStrategy> {
    strategy.start(space.clone(), &StrategySettings { seed, start: Vec::new() })
}

/// Runs a number of trials, and checks the proposals.
fn run(
    search: &mut dyn SearchStrategy,
    space: &SearchSpace,
    trials: usize,
    batch: usize,
    mut outcome: impl FnMut(&Point) -> Option<Outcome>,
) -> Vec<Point> {
    let mut tried = Vec::new();
    let mut seen = HashSet::new();
    while tried.len() < trials {
        let points = match search.propose(batch) {
            Proposal::Points(points) => points,
            Proposal::Wait | Proposal::Exhausted => break,
        };
        assert!(!points.is_empty() && points.len() <= batch);
        for point in &points {
            assert!(space.is_legal(point), "{point} is illegal");
            assert!(seen.insert(point.clone()), "{point} was proposed twice");
        }
        let observations: Vec<Observation> = points
            .iter()
            .filter_map(|point| {
                Some(Observation { point: point.clone(), outcome: outcome(point)? })
            })
            .collect();
        search.observe(&observations);
        tried.extend(points);
    }
    tried
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_one_another() {
    let space = space();
    for strategy in STRATEGIES {
        let trace = |seed, batch| {
            let mut search = start(strategy, &space, seed);
            run(search.as_mut(), &space, 120, batch, |p| Some(measured(bowl(&space, p))))
        };
        for batch in [1, 7] {
            let first = trace(3, batch);
            assert_eq!(first.len().div_ceil(batch), 120usize.div_ceil(batch), "{}", strategy.name);
            assert_eq!(first, trace(3, batch), "{}", strategy.name);
        }
        assert_eq!(trace(3, 1) == trace(4, 1), strategy.name == "exhaustive", "{}", strategy.name);
    }
}

#[test]
fn small_spaces_are_exhausted() {
    let space = Arc::new(SearchSpace::with_rules(parameters(4), Arc::new(Picky)));
    let legal = space.points().filter(|point| space.is_legal(point)).count();
    assert!((100..1000).contains(&legal), "{legal}");
    for strategy in STRATEGIES {
        let mut search = start(strategy, &space, 1);
        let tried =
            run(search.as_mut(), &space, usize::MAX, 20, |p| Some(measured(bowl(&space, p))));
        assert_eq!(tried.len(), legal, "{}", strategy.name);
        assert_eq!(search.propose(1), Proposal::Exhausted, "{}", strategy.name);
    }
}

#[test]
fn spaces_without_legal_points_and_without_parameters_end() {
    #[derive(Debug)]
    struct Nothing;
    impl Rules for Nothing {
        fn check(&self, _: &[Parameter], _: &Point) -> Result<(), Rejection> {
            Err(Rejection { rule: "nothing", reason: String::new() })
        }
    }
    let nothing = Arc::new(SearchSpace::with_rules(parameters(4), Arc::new(Nothing)));
    let empty = Arc::new(SearchSpace::new(Vec::new()));
    for strategy in STRATEGIES {
        assert_eq!(
            start(strategy, &nothing, 1).propose(4),
            Proposal::Exhausted,
            "{}",
            strategy.name
        );
        let mut search = start(strategy, &empty, 1);
        let tried = run(search.as_mut(), &empty, 10, 4, |_| Some(measured(1.0)));
        assert_eq!(tried.len(), 1, "{}", strategy.name);
    }
}

#[test]
fn all_kinds_of_outcomes_are_survived() {
    let space = space();
    for strategy in STRATEGIES {
        let mut rng = Rng::new(5);
        let mut search = start(strategy, &space, 5);
        let tried = run(search.as_mut(), &space, 300, 3, |_| Some(anything(&mut rng)));
        assert_eq!(tried.len(), 300, "{}", strategy.name);
    }
}

#[test]
fn outcomes_that_never_come_back_stall_nothing() {
    let space = space();
    for strategy in STRATEGIES {
        // First all outcomes are lost, then half.
        for lost in [1.0, 0.5] {
            let mut rng = Rng::new(6);
            let mut search = start(strategy, &space, 6);
            let tried = run(search.as_mut(), &space, 200, 8, |p| {
                (!rng.chance(lost)).then(|| measured(bowl(&space, p)))
            });
            assert_eq!(tried.len(), 200, "{} with {lost} lost", strategy.name);
        }
    }
}

#[test]
fn a_start_where_everything_fails_stalls_nothing() {
    let space = space();
    for strategy in STRATEGIES {
        let mut search = start(strategy, &space, 7);
        let mut count = 0;
        let tried = run(search.as_mut(), &space, 200, 1, |p| {
            count += 1;
            let failed = Outcome::Crashed { reason: "signal 11".into(), stderr: String::new() };
            Some(if count <= 100 { failed } else { measured(bowl(&space, p)) })
        });
        assert_eq!(tried.len(), 200, "{}", strategy.name);
    }
}

#[test]
fn points_to_start_from_come_first_and_wrong_ones_are_left_out() {
    let space = space();
    let mut rng = Rng::new(8);
    let good: Vec<Point> = (0..3).map(|_| space.sample_legal(&mut rng).unwrap()).collect();
    let illegal = space.points().find(|point| !space.is_legal(point)).unwrap();
    let wrong = [illegal, Point::new([1]), Point::new([u32::MAX; 5])];
    let both = [&wrong[..], &good[..2], &good[..1], &wrong[..], &good[2..]].concat();
    for strategy in STRATEGIES {
        let settings = StrategySettings { seed: 8, start: both.clone() };
        let mut search = strategy.start(space.clone(), &settings);
        let tried = run(search.as_mut(), &space, 20, 1, |p| Some(measured(bowl(&space, p))));
        assert_eq!(tried[..3], good, "{}", strategy.name);
        assert_eq!(tried.len(), 20, "{}", strategy.name);
    }
}

#[test]
fn what_others_tried_is_not_tried_again() {
    let space = space();
    for strategy in STRATEGIES {
        let mut search = start(strategy, &space, 9);
        let mut rng = Rng::new(9);
        let told: Vec<Point> = (0..200).map(|_| space.sample_legal(&mut rng).unwrap()).collect();
        let observe = |point: &Point| Observation {
            point: point.clone(),
            outcome: measured(bowl(&space, point)),
        };
        search.observe(&told.iter().map(observe).collect::<Vec<_>>());
        // Points of another space are ignored.
        search.observe(&[Observation { point: Point::new([9, 9]), outcome: measured(1e-9) }]);
        let tried = run(search.as_mut(), &space, 100, 1, |p| Some(measured(bowl(&space, p))));
        assert_eq!(tried.len(), 100, "{}", strategy.name);
        assert!(tried.iter().all(|point| !told.contains(point)), "{}", strategy.name);
    }
}

#[test]
fn every_strategy_is_on_the_page() {
    let page = include_str!("../../../../docs/tuning.md");
    for Strategy { name, .. } in STRATEGIES {
        let is_row = |line: &str| line.starts_with("| `") && line.contains(&format!("`{name}`"));
        assert!(page.lines().any(is_row), "docs/tuning.md has no row for `{name}`");
    }
}

#[test]
fn the_bottom_of_a_bowl_is_found() {
    let space = space();
    let legal: Vec<Point> = space.points().filter(|point| space.is_legal(point)).collect();
    let cost = |point: &Point| bowl(&space, point);
    let optimum = legal.iter().map(cost).fold(f64::INFINITY, f64::min);
    for strategy in STRATEGIES {
        let trials = match strategy.name {
            "random" | "exhaustive" => legal.len(),
            "genetic" => 600,
            _ => 300,
        };
        let mut found = 0;
        for seed in 0..5 {
            let mut search = start(strategy, &space, seed);
            let tried = run(search.as_mut(), &space, trials, 1, |p| Some(measured(cost(p))));
            found += usize::from(tried.iter().any(|point| cost(point) <= optimum));
        }
        assert!(found >= 4, "{} found it with {found} of 5 seeds", strategy.name);
    }
}
