//! Measures verified trials per second.
//!
//! Run `cargo build --release -p tensorwright-measure`, then `cargo run --release -p
//! tensorwright-measure --example throughput`. It tries variants of the default schedule of a
//! matrix product of 1024 on one thread; with `--default`, the default schedule again and again.
#![allow(clippy::print_stdout, reason = "prints what it measured")]

use std::time::{Duration, Instant};

use tensorwright::{Module, Schedule, Target};
use tensorwright_measure::{Config, Measurer, WorkerCommand};
use tensorwright_outcome::Tally;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only_default = std::env::args().any(|arg| arg == "--default");
    let text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    let sizes = [("M", 1024), ("N", 1024), ("K", 1024)];
    let program = Module::parse("mm.tc", text)?.def("mm")?.bind(sizes)?;
    let default = program.compile().lower()?.schedule().to_string();
    let worker = std::env::current_exe()?.with_file_name("../tensorwright-worker");
    let start = Instant::now();
    let config = Config::new(WorkerCommand::new(worker), Target::native()?);
    let mut measurer = Measurer::start(&program, config)?;
    println!("started after {:.2?}; {:?}", start.elapsed(), measurer.roofline());
    let (trials, mut best, mut tally) = (100, f64::INFINITY, Tally::default());
    let mut spent = [Duration::ZERO; 3];
    let start = Instant::now();
    let mut submitted = 0;
    while tally.total() < trials {
        while measurer.in_flight() < 8 && submitted < trials {
            let text = if only_default { default.clone() } else { vary(&default, submitted) };
            measurer.submit(submitted, &Schedule::parse(&text)?);
            submitted += 1;
        }
        let Some(finished) = measurer.next(Duration::from_secs(60)) else { break };
        if let Some(seconds) = finished.outcome.cost().filter(|seconds| *seconds < best) {
            best = seconds;
            measurer.set_best(best);
            println!("trial {}: {}", finished.id, finished.outcome);
        }
        spent[0] += finished.spent.build;
        spent[1] += finished.spent.check;
        spent[2] += finished.spent.time;
        tally.add(&finished.outcome);
    }
    let each = start.elapsed() / trials as u32;
    println!("{tally}; {each:.1?} a trial; {} s for 500", each.as_secs_f64() * 500.0);
    println!("build, check, time: {:.1?}", spent.map(|spent| spent / trials as u32));
    println!("{:?}", tally.commonest(5));
    Ok(())
}

/// A schedule with some of its numbers doubled or halved.
fn vary(text: &str, seed: u64) -> String {
    let mut state = seed;
    let mut word = |word: &str| match word.parse::<i64>() {
        Ok(number) if number > 1 => {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            match (state >> 60) & 7 {
                0 => (number * 2).to_string(),
                1 => (number / 2).to_string(),
                _ => number.to_string(),
            }
        }
        _ => word.to_owned(),
    };
    let lines =
        text.lines().map(|line| line.split(' ').map(&mut word).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}
