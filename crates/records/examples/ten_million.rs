//! Fills a database with many records and measures it:
//!
//! ```text
//! cargo run --release -p tensorwright-records --features postgres --example ten_million [RECORDS [PLACE]]
//! ```
//!
//! The database is a file in a temporary directory, unless a place is given, a file or the URL of a
//! server: then it stays there, and the next call with that place measures it again.
#![allow(clippy::print_stdout, reason = "this is what it is for")]

#[path = "../tests/it/support/synthetic.rs"]
mod synthetic;

use std::time::Instant;

use synthetic::{RUNS, TRIALS};
use tensorwright_random::SplitMix;
use tensorwright_records::{Event, Location, StoreOptions, open_at, open_existing};

/// Runs per transaction.
const BATCH: u64 = 50;

/// The number of timed lookups.
const LOOKUPS: usize = 2000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments.next().map_or(Ok(10_000_000), |text| text.parse())?;
    let runs = (records / TRIALS).max(RUNS);
    if let Some(place) = arguments.next() {
        let place: Location = place.parse()?;
        if open_existing(Some(&place))?.is_none() {
            fill(runs, &place)?;
        }
        return measure(runs, &place);
    }
    let directory = tempfile::tempdir()?;
    let place = Location::File(directory.path().join("records.sqlite3"));
    fill(runs, &place)?;
    measure(runs, &place)
}

fn fill(runs: u64, place: &Location) -> Result<()> {
    let mut store = open_at(place, StoreOptions { durable: false, ..StoreOptions::default() })?;
    let start = Instant::now();
    for first in (0..runs).step_by(BATCH as usize) {
        let batch: Vec<Event> = (first..runs.min(first + BATCH)).flat_map(synthetic::run).collect();
        store.apply(&batch)?;
    }
    let (seconds, records) = (start.elapsed().as_secs_f64(), runs * TRIALS);
    println!("{records} records in {seconds:.1} s, {:.0} per second", records as f64 / seconds);
    Ok(())
}

fn measure(runs: u64, place: &Location) -> Result<()> {
    let mut store = open_at(place, StoreOptions::default())?;
    let bytes = store.bytes()?;
    println!("{bytes} bytes, {:.1} per record", bytes as f64 / (runs * TRIALS) as f64);
    println!("plan: {}", store.plan_of_best()?);
    let keys = (runs / RUNS).max(1);
    let mut random = SplitMix::new(1);
    let chosen: Vec<u64> = (0..LOOKUPS).map(|_| random.below(keys)).collect();
    let best = timed(&chosen, |key| Ok(store.best(&synthetic::key(key).1)?.is_some()))?;
    println!("best    {best}");
    let near = timed(&chosen[..LOOKUPS / 10], |key| {
        let (program, key) = synthetic::key(key);
        Ok(!store.nearest(&key, &program.sizes, 5)?.is_empty())
    })?;
    println!("nearest {near}");
    let mut inserts = synthetic::run(runs);
    let trials = inserts.split_off(2);
    store.apply(&inserts)?;
    let one = timed(&(0..200).collect::<Vec<u64>>(), |at| {
        Ok(!store.apply(&trials[at as usize..=at as usize])?.is_empty())
    })?;
    println!("insert  {one} (durable, one by one)");
    Ok(())
}

/// The median, the 99th percentile and the maximum of times, in milliseconds.
fn timed(over: &[u64], mut work: impl FnMut(u64) -> Result<bool>) -> Result<String> {
    let mut times = Vec::with_capacity(over.len());
    for item in over {
        let start = Instant::now();
        if !work(*item)? {
            return Err("nothing was found".into());
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Ok(format!("median {:.3} ms, p99 {:.3} ms, longest {:.3} ms", at(0.5), at(0.99), at(1.0)))
}
