//! Times training and prediction.
//!
//! Run `cargo run --release -p tensorwright-learn --example learn_timing`.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::time::Instant;

use tensorwright_learn::{AdaDelta, Boosted, Boosting, Mlp, Objective, squared_error};

fn main() {
    boosted("squared", Objective::Squared);
    boosted("pairwise", Objective::Pairwise { opponents: 4 });
    network();
}

/// The seconds of the fastest call: other load on the machine only adds time.
fn fastest<T>(calls: usize, mut call: impl FnMut() -> T) -> f64 {
    let time = |_| {
        let start = Instant::now();
        std::hint::black_box(call());
        start.elapsed().as_secs_f64()
    };
    (0..calls).map(time).fold(f64::INFINITY, f64::min)
}

fn numbers(count: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..count).map(next).collect()
}

fn boosted(name: &str, objective: Objective) {
    let features = 100;
    let rows = numbers(2000 * features);
    let value = |row: &[f32]| row[0] * row[1] + row[2] * (row[3] - 0.5).abs() + row[4];
    let targets: Vec<f32> = rows.chunks(features).map(value).collect();
    let boosting = Boosting { objective, rows: 1.0, features: 1.0, ..Boosting::default() };
    let fit = || Boosted::fit(&rows, features, &targets, &boosting, 1);
    let model = fit();
    let seconds = fastest(5, fit);
    println!("{name}: 50 trees on 2,000 x {features}: {:.1} ms", 1e3 * seconds);
    let seconds = fastest(25, || model.predict(&rows[..1000 * features]));
    println!("{name}: predictions of 1,000 rows: {:.2} ms", 1e3 * seconds);
}

fn network() {
    let mut network = Mlp::new(&[64, 128, 128, 64], 1);
    let mut optimiser = AdaDelta::default();
    let (mut tape, mut gradient) = (network.tape(), Vec::new());
    let (rows, targets) = (numbers(64 * 64), numbers(64 * 64));
    let seconds = fastest(1001, || network.forward(&rows[..64], &mut tape).len());
    println!("64-128-128-64, one row: {:.1} us", 1e6 * seconds);
    let seconds = fastest(201, || {
        squared_error(network.forward(&rows, &mut tape), &targets, &mut gradient);
        network.backward(&gradient, &mut tape);
        network.descend(&tape, &mut optimiser);
    });
    println!("64-128-128-64, AdaDelta step on 64 rows: {:.2} ms", 1e3 * seconds);
}
