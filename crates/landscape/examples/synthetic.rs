//! Compares the strategies on made-up landscapes that resemble tiled kernels.
//!
//! `cargo run --release -p tensorwright-landscape --example synthetic -- [STRATEGY...]`
#![allow(clippy::print_stdout, reason = "an example")]

use std::time::Duration;

use tensorwright_landscape::{Comparison, Experiment, Landscape, LandscapeError, Provenance};
use tensorwright_outcome::{Outcome, Timing};
use tensorwright_search::registry::STRATEGIES;
use tensorwright_space::parameter::{Categorical, Discrete, Factorization, Permutation, Splits};
use tensorwright_space::{Domain, Parameter, Point, Rng, SearchSpace};

/// A made-up machine and operator.
struct Model {
    name: &'static str,
    extents: [u64; 3],
    parts: [usize; 3],
    splits: Splits,
    registers: f64,
    cache: f64,
    noise: f64,
    failures: f64,
}

const MODELS: [Model; 4] = [
    Model {
        name: "gemm",
        extents: [64, 64, 64],
        parts: [3, 3, 2],
        splits: Splits::Divisible,
        registers: 16.0,
        cache: 4096.0,
        noise: 0.02,
        failures: 0.0,
    },
    Model {
        name: "gemm, odd extents",
        extents: [60, 49, 77],
        parts: [2, 2, 2],
        splits: Splits::Covering,
        registers: 32.0,
        cache: 2048.0,
        noise: 0.02,
        failures: 0.02,
    },
    Model {
        name: "rugged",
        extents: [48, 112, 32],
        parts: [3, 3, 2],
        splits: Splits::Divisible,
        registers: 16.0,
        cache: 3000.0,
        noise: 0.08,
        failures: 0.0,
    },
    Model {
        name: "failing",
        extents: [32, 64, 64],
        parts: [3, 3, 2],
        splits: Splits::Divisible,
        registers: 32.0,
        cache: 8192.0,
        noise: 0.02,
        failures: 0.25,
    },
];

fn main() -> Result<(), LandscapeError> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let chosen =
        STRATEGIES.iter().filter(|s| names.is_empty() || names.iter().any(|n| n == s.name));
    let strategies: Vec<_> = chosen.filter(|s| s.name != "exhaustive").collect();
    for model in &MODELS {
        let landscape = landscape(model)?;
        // The CPU time of the thread: other work on the machine does not count.
        let clock = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::try_from(time).map_or(0.0, |time| time.as_secs_f64())
        };
        let experiment = Experiment { threads: 2, ..Experiment::default() };
        let comparison = Comparison::run(&landscape, &strategies, &experiment, &clock, &|_, _| ());
        let bytes = landscape.encode()?.len() as f64 / landscape.points().len() as f64;
        println!("{}: {bytes:.1} bytes per point", model.name);
        println!("{comparison}");
    }
    Ok(())
}

fn landscape(model: &Model) -> Result<Landscape, LandscapeError> {
    let split = |name, place: usize| {
        let (extent, parts) = (model.extents[place], model.parts[place]);
        Parameter::new(name, Factorization::new(extent, parts, model.splits))
    };
    let parameters = vec![
        split("m", 0),
        split("n", 1),
        split("k", 2),
        Parameter::new("order", Permutation::new(["m", "n"])),
        Parameter::new("unroll", Discrete::new([1, 2, 4])),
        Parameter::new("pack", Categorical::new(["no", "yes"])),
    ];
    let space = SearchSpace::new(parameters);
    let mut rng = Rng::new(7);
    let legal = |point: &Point| registers(&space, point) <= model.registers + 4.0;
    let outcomes = space.points().filter(legal).map(|point| {
        let outcome = outcome(model, &space, &point, &mut rng);
        (point, outcome)
    });
    Landscape::new(
        Provenance { complete: true, ..Provenance::default() },
        space.parameters().to_vec(),
        outcomes,
    )
}

/// The outer, middle and inner loops; the middle one is 1 if there are only two.
fn tiles(space: &SearchSpace, point: &Point) -> [[u64; 3]; 3] {
    [0, 1, 2].map(|place| match space.parameters()[place].domain() {
        Domain::Factorization(splits) => match splits.value(point.rank(place)) {
            [outer, middle, inner] => [*outer, *middle, *inner],
            [outer, inner] => [*outer, 1, *inner],
            _ => [1; 3],
        },
        _ => [1; 3],
    })
}

fn registers(space: &SearchSpace, point: &Point) -> f64 {
    let [m, n, _] = tiles(space, point);
    let (rows, columns) = (m[2] as f64, (n[2] as f64 / 8.0).ceil());
    rows * columns + rows.min(columns) + 1.0
}

fn outcome(model: &Model, space: &SearchSpace, point: &Point, rng: &mut Rng) -> Outcome {
    let noise = 1.0 + model.noise * (rng.unit() + rng.unit() + rng.unit() - 1.5);
    let [m, n, k] = tiles(space, point);
    if k[2] * n[2] > 512 && rng.chance(2.0 * model.failures) || rng.chance(model.failures / 4.0) {
        return Outcome::Crashed { reason: "signal 11".into(), stderr: String::new() };
    }
    let work: f64 = [m, n, k].iter().map(|t| t.iter().product::<u64>() as f64).product();
    let vectors = (n[2] as f64 / 8.0).ceil();
    let waste = vectors * 8.0 / n[2] as f64;
    let (rows, depth) = (m[2] as f64, k[2] as f64);
    let latency = (8.0 / (rows * vectors)).max(1.0);
    let loads = (rows + vectors) / (rows * vectors);
    let spills = (registers(space, point) / model.registers).max(1.0).powi(2);
    let unroll = f64::from(1u32 << point.rank(4));
    let overhead = 1.0 + 2.0 / (depth.min(unroll * 8.0)) + 0.02 * unroll;
    let inner = (m[1] * m[2]) as f64 * depth + (n[1] * n[2]) as f64 * depth;
    let misses = 1.0 + 0.6 * (inner / model.cache).ln().max(0.0);
    let reuse = 1.0 + 30.0 / (m[1] * m[2]) as f64 + 10.0 / (n[1] * n[2]) as f64;
    let packed = point.rank(5) == 1;
    let strides =
        if packed { 1.0 + 40.0 / (m[1] * m[2] + 40) as f64 * 0.5 } else { 1.0 + depth / 64.0 };
    let order = 1.0 + 0.06 * f64::from(point.rank(3).abs_diff(2));
    let cost =
        work * waste * latency * (0.5 + loads) * spills * overhead * misses * reuse * strides;
    Outcome::Measured(Timing { seconds: cost * order * noise * 1e-9, ..Timing::default() })
}
