//! Landscape files, and replayed searches.

use std::collections::BTreeMap;

use crate::{Comparison, Experiment, Landscape, Provenance, Replay, replay};
use tensorwright_outcome::{Outcome, Phase, Timing};
use tensorwright_search::find;
use tensorwright_search::registry::STRATEGIES;
use tensorwright_space::parameter::{Categorical, Discrete, Factorization, Permutation, Splits};
use tensorwright_space::{Parameter, Point, Rng, SearchSpace};

fn parameters() -> Vec<Parameter> {
    let filtered = Factorization::filtered(24, 3, Splits::Covering, |value| value[2] <= 8);
    vec![
        Parameter::new("m", Factorization::new(16, 3, Splits::Divisible)),
        Parameter::new("n", filtered),
        Parameter::new("order", Permutation::new(["i", "j"])),
        Parameter::new("unroll", Discrete::new([1, 2, 4])),
        Parameter::new("pack", Categorical::new(["no", "yes"])),
    ]
}

fn origin() -> Provenance {
    Provenance {
        program: "def f(float(N) A) -> (B) { B(n) = A(n) }".into(),
        def: "f".into(),
        sizes: BTreeMap::from([("N".into(), 16)]),
        key: "0123".into(),
        machine: "none".into(),
        method: "made up".into(),
        complete: false,
        start: vec![Point::new([0, 0, 0, 0, 0])],
    }
}

fn outcome(point: &Point, rng: &mut Rng) -> Outcome {
    let ranks = point.ranks();
    match rng.index(20) {
        0 => Outcome::Crashed { reason: "signal 11".into(), stderr: "long".into() },
        1 => Outcome::TimedOut { phase: Phase::Time, limit: 1.0 },
        2 => Outcome::BuildFailed { reason: format!("reason {}", ranks[0]) },
        _ => {
            let bowl: u32 = ranks.iter().zip([5, 20, 1, 1, 0]).map(|(r, b)| r.abs_diff(b)).sum();
            let seconds = 1e-3 * (1.0 + 0.1 * f64::from(bowl) + 0.01 * rng.unit());
            Outcome::Measured(Timing { seconds, spread: rng.unit() / 10.0, ..Timing::default() })
        }
    }
}

/// Nine points of ten, so that the points are not a product.
fn landscape() -> Landscape {
    let space = SearchSpace::new(parameters());
    let mut rng = Rng::new(1);
    let mut all: Vec<(Point, Outcome)> = Vec::new();
    for point in space.points() {
        if rng.chance(0.9) {
            let outcome = outcome(&point, &mut rng);
            all.push((point, outcome));
        }
    }
    all.reverse();
    Landscape::new(origin(), parameters(), all).unwrap()
}

#[test]
fn a_landscape_survives_its_file_in_a_few_bytes_per_point() {
    let landscape = landscape();
    let bytes = landscape.encode().unwrap();
    let back = Landscape::decode(&bytes).unwrap();
    assert_eq!(back, landscape);
    assert_eq!(back.origin(), &origin());
    assert_eq!(back.encode().unwrap(), bytes);
    let points = landscape.points().len();
    assert!(points > 5000, "{points}");
    assert!(bytes.len() < 6 * points, "{} bytes for {points} points", bytes.len());
    assert_eq!(back.space().parameters(), parameters());
    for point in landscape.points() {
        assert_eq!(back.outcome(point), landscape.outcome(point));
        assert!(back.space().is_legal(point));
    }
    assert_eq!(back.tally().total(), points as u64);
}

#[test]
fn the_space_has_exactly_the_recorded_points() {
    let landscape = landscape();
    let space = landscape.space();
    let all = space.points().count();
    let legal: Vec<Point> = space.points().filter(|point| space.is_legal(point)).collect();
    assert!(legal.len() < all);
    assert_eq!(legal, landscape.points());
    assert_eq!(landscape.outcome(&Point::new([9])), None);
    let (fastest, seconds) = landscape.optimum().unwrap();
    assert_eq!(landscape.outcome(fastest).unwrap().cost(), Some(seconds));
    assert_eq!(landscape.seconds()[0], seconds);
    let mut rng = Rng::new(2);
    assert!((0..1000).all(|_| space.is_legal(&space.sample_legal(&mut rng).unwrap())));
}

#[test]
fn points_outside_the_space_are_refused() {
    let one = |point: Point| Landscape::new(origin(), parameters(), [(point, Outcome::DeviceLost)]);
    for ranks in [vec![0], vec![0, 0, 0, 0, 2], vec![u32::MAX; 5]] {
        assert!(one(Point::new(ranks)).is_err());
    }
    let empty = Landscape::new(Provenance::default(), Vec::new(), []).unwrap();
    assert_eq!(Landscape::decode(&empty.encode().unwrap()).unwrap(), empty);
    assert_eq!(empty.optimum(), None);
}

#[test]
fn damaged_files_are_errors() {
    let bytes = small().encode().unwrap();
    for length in 0..bytes.len() {
        assert!(Landscape::decode(&bytes[..length]).is_err(), "cut at {length}");
    }
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            // Two bits of zlib's header mean nothing; a successful read must return the same.
            if let Ok(read) = Landscape::decode(&flipped) {
                assert_eq!(read, small(), "bit {bit} of byte {place}");
            }
        }
    }
    let longer = [&bytes[..], b"more"].concat();
    assert!(Landscape::decode(&longer).is_err());
    let text = Landscape::decode(b"def f() {}").unwrap_err().to_string();
    assert_eq!(text, "this is not a landscape, or one of another version");
}

/// Damage with a right checksum: a deliberately forged file.
#[test]
fn forged_files_are_errors_or_landscapes_and_nothing_else() {
    use std::io::{Read, Write};
    let bytes = small().encode().unwrap();
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(&bytes[8..]).read_to_end(&mut plain).unwrap();
    let mut rng = Rng::new(3);
    for _ in 0..4000 {
        let mut forged = plain.clone();
        for _ in 0..1 + rng.index(3) {
            let place = rng.index(forged.len());
            forged[place] = rng.next_u64() as u8;
        }
        let mut encoder =
            flate2::write::ZlibEncoder::new(bytes[..8].to_vec(), flate2::Compression::fast());
        encoder.write_all(&forged).unwrap();
        if let Ok(read) = Landscape::decode(&encoder.finish().unwrap()) {
            let _ = (read.optimum(), read.tally(), read.encode());
        }
    }
}

fn small() -> Landscape {
    let parameters = vec![
        Parameter::new("tile", Factorization::new(8, 2, Splits::Divisible)),
        Parameter::new("pack", Categorical::new(["no", "yes"])),
    ];
    let space = SearchSpace::new(parameters.clone());
    let mut rng = Rng::new(4);
    let outcomes: Vec<_> =
        space.points().map(|p| (p.clone(), outcome(&pad(&p), &mut rng))).collect();
    Landscape::new(Provenance::default(), parameters, outcomes).unwrap()
}

fn pad(point: &Point) -> Point {
    Point::new([point.rank(0), point.rank(1), 0, 0, 0])
}

#[test]
fn a_replay_is_the_same_for_the_same_seed_and_ends_with_the_points() {
    let landscape = landscape();
    for strategy in STRATEGIES {
        for batch in [1, 6] {
            let how = Replay { seed: 5, trials: 60, batch, start: false };
            let trace = replay(&landscape, strategy, &how, &|| 0.0);
            assert_eq!(trace.trials.len(), 60, "{}", strategy.name);
            assert_eq!(trace, replay(&landscape, strategy, &how, &|| 0.0), "{}", strategy.name);
        }
    }
    let small = small();
    let how = Replay { trials: 1000, ..Replay::default() };
    let trace = replay(&small, find("random").unwrap(), &how, &|| 0.0);
    assert_eq!(trace.trials.len(), small.points().len());
    assert_eq!(trace.best_after(1000), small.optimum().map(|(_, seconds)| seconds));
    assert_eq!(trace.trials_to(0.0), None);
}

#[test]
fn a_replay_can_begin_at_the_default() {
    let landscape = landscape();
    let start = &landscape.origin().start[0];
    if landscape.space().is_legal(start) {
        let how = Replay { start: true, trials: 3, ..Replay::default() };
        let trace = replay(&landscape, find("random").unwrap(), &how, &|| 0.0);
        assert_eq!(&trace.trials[0].point, start);
    }
}

#[test]
fn a_comparison_does_not_depend_on_threads_and_prints_as_a_table() {
    let landscape = landscape();
    let strategies = [find("random").unwrap(), find("descent").unwrap()];
    let experiment =
        |threads| Experiment { seeds: 5, trials: 200, threads, ..Experiment::default() };
    let run = |threads| {
        Comparison::run(&landscape, &strategies, &experiment(threads), &|| 0.0, &|_, _| ())
    };
    let comparison = run(1);
    assert_eq!(comparison, run(3));
    let [random, descent] = &comparison.rows[..] else { panic!() };
    assert!(descent.reach[0].trials.median <= random.reach[0].trials.median);
    assert_eq!(descent.after.len(), 2);
    let text = comparison.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[1].starts_with("strategy"));
    assert!(lines[2].starts_with("random") && lines[3].starts_with("descent"));
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["rows"][1]["strategy"], "descent");
    assert_eq!(json["rows"][0]["reach"][1]["level"], 0.95);
}

#[test]
fn the_own_time_is_that_between_readings_of_the_clock() {
    let ticks = std::cell::Cell::new(0.0);
    let clock = || {
        ticks.set(ticks.get() + 1.0);
        ticks.get()
    };
    let how = Replay { trials: 5, ..Replay::default() };
    let trace = replay(&small(), find("random").unwrap(), &how, &clock);
    // Once for the start, twice for every trial.
    assert_eq!(trace.own_seconds, 11.0);
}
