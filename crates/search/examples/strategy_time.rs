//! Measures the time per trial that strategies need, on a synthetic landscape:
//!
//! ```text
//! cargo run --release -p tensorwright-search --example strategy_time [TRIALS]
//! ```
#![allow(clippy::print_stdout, reason = "an example that prints")]

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../src/tests/support/landscape.rs"]
mod landscape;

use std::time::{Duration, Instant};

use tensorwright_search::registry::STRATEGIES;
use tensorwright_search::{Observation, Proposal, Strategy, StrategySettings};
use tensorwright_space::SearchSpace;

fn main() {
    let trials = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(500);
    println!("{} points", landscape::space(1024).size());
    for strategy in STRATEGIES {
        let mut runs: Vec<(f64, Duration)> =
            (0..5).map(|seed| run(strategy, &landscape::space(1024), trials, seed)).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let own = runs.iter().map(|run| run.1).min().unwrap_or_default();
        println!(
            "{:12} {:7.3} ms a trial, best {:.3} ms (median of 5 seeds)",
            strategy.name,
            1e3 * own.as_secs_f64() / trials as f64,
            1e3 * runs[2].0
        );
    }
}

/// The best time found, and the time used by the strategy.
fn run(
    strategy: &Strategy,
    space: &std::sync::Arc<SearchSpace>,
    trials: usize,
    seed: u64,
) -> (f64, Duration) {
    let start = Instant::now();
    let settings = StrategySettings { seed, ..StrategySettings::default() };
    let mut search = strategy.start(space.clone(), &settings);
    let (mut used, mut best, mut done) = (start.elapsed(), f64::INFINITY, 0);
    while done < trials {
        let start = Instant::now();
        let Proposal::Points(points) = search.propose(2) else { break };
        used += start.elapsed();
        done += points.len();
        let observe = |point| Observation { outcome: landscape::outcome(space, &point), point };
        let observations: Vec<Observation> = points.into_iter().map(observe).collect();
        best = observations.iter().filter_map(|o| o.outcome.cost()).fold(best, f64::min);
        let start = Instant::now();
        search.observe(&observations);
        used += start.elapsed();
    }
    (best, used)
}
