//! Fork-join latency of two threads: this pool, rayon and scoped threads.
//!
//! Measured on a quiet machine, after idling, and on an oversubscribed machine.
//!
//! `cargo run --release -p tensorwright-runtime --example fork_join`
#![allow(clippy::print_stdout, reason = "prints a table")]

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tensorwright_runtime::timing::stats::quantile;
use tensorwright_runtime::{Machine, Pool};

/// The threads of a loop.
const THREADS: usize = 2;

/// A parallel loop of two iterations.
type ForkJoin<'a> = &'a dyn Fn(&(dyn Fn() + Sync));

/// The work of an iteration.
#[derive(Clone, Copy)]
enum Work {
    /// Nothing.
    Empty,
    /// Waits until the other iteration has begun, which needs both threads.
    Meet,
    /// A number of rounds of arithmetic.
    Rounds(u64),
}

/// The state of the machine.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    Quiet,
    Idling,
    Crowded,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}\n", Machine::detect());
    let pool = Pool::new(THREADS)?;
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build()?;
    let contenders: [(&str, ForkJoin<'_>); 3] = [
        ("this pool", &|body| pool.run(THREADS as i64, &|range, _| range.for_each(|_| body()))),
        ("rayon", &|body| {
            rayon.install(|| rayon::join(body, body));
        }),
        ("scoped threads", &|body| {
            std::thread::scope(|scope| {
                scope.spawn(body);
                body();
            });
        }),
    ];
    let work = [
        ("empty", Work::Empty),
        ("both threads meet", Work::Meet),
        ("2 x 10 us", Work::Rounds(rounds_of(Duration::from_micros(10)))),
    ];
    println!("microseconds, median / 90th percentile\n");
    println!("| around | loop | {} | {} | {} |", contenders[0].0, contenders[1].0, contenders[2].0);
    println!("| --- | --- | --- | --- | --- |");
    let around = [
        ("quiet", Around::Quiet),
        ("after 200 us of idling", Around::Idling),
        ("crowded: a busy thread per core", Around::Crowded),
    ];
    for (around_name, around) in around {
        for (work_name, work) in work {
            let cells = contenders.map(|(_, fork_join)| surrounded(around, work, fork_join));
            println!(
                "| {around_name} | {work_name} | {} | {} | {} |",
                cells[0], cells[1], cells[2]
            );
        }
    }
    Ok(())
}

/// Measures in a state of the machine.
fn surrounded(around: Around, work: Work, fork_join: ForkJoin<'_>) -> String {
    if around != Around::Crowded {
        return measure(around, work, fork_join);
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let cell = measure(around, work, fork_join);
        stop.store(true, Ordering::Relaxed);
        cell
    })
}

/// The median and the 90th percentile of many loops within half a second.
fn measure(around: Around, work: Work, fork_join: ForkJoin<'_>) -> String {
    let begun = AtomicUsize::new(0);
    let body = || match work {
        Work::Empty => {}
        Work::Meet => meet(&begun),
        Work::Rounds(rounds) => compute(rounds),
    };
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < Duration::from_millis(600) {
        begun.store(0, Ordering::Relaxed);
        if around == Around::Idling {
            idle(Duration::from_micros(200));
        }
        let before = Instant::now();
        fork_join(&body);
        let time = before.elapsed().as_nanos() as f64 / 1000.0;
        // The first part is warm-up.
        if start.elapsed() > Duration::from_millis(100) {
            times.push(time);
        }
    }
    format!("{:.2} / {:.2}", quantile(&mut times, 0.5), quantile(&mut times, 0.9))
}

/// Waits until both iterations are here; yields if that takes long.
fn meet(begun: &AtomicUsize) {
    begun.fetch_add(1, Ordering::Relaxed);
    let mut polls = 0u32;
    while begun.load(Ordering::Relaxed) < THREADS {
        polls += 1;
        if polls.is_multiple_of(1000) {
            std::thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Waits in this thread without yielding the CPU.
fn idle(duration: Duration) {
    let start = Instant::now();
    while start.elapsed() < duration {
        spin_loop();
    }
}

/// A chain of dependent operations: the same number of cycles on every call, whether or not the
/// other thread runs on the same core.
fn compute(rounds: u64) {
    let mut value = black_box(1u64);
    for _ in 0..rounds {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    black_box(value);
}

/// The rounds of [`compute`] in a duration, undisturbed.
fn rounds_of(duration: Duration) -> u64 {
    let trial = 10_000;
    let fastest = (0..1000).map(|_| {
        let start = Instant::now();
        compute(trial);
        start.elapsed()
    });
    let fastest = fastest.min().unwrap_or(duration).as_nanos().max(1) as u64;
    trial * duration.as_nanos() as u64 / fastest
}
