//! Fills a database with many records and measures it:
//!
//! ```text
//! cargo run --release -p tensorwright-records --example ten_million [RECORDS [DIRECTORY]]
//! ```
//!
//! The database is made in a directory of its own and removed, unless a directory is given: then it
//! stays there, and the next call with that directory measures it again.
#![allow(clippy::print_stdout, reason = "this is what it is for")]

#[path = "../tests/support/synthetic.rs"]
mod synthetic;

use std::path::Path;
use std::time::Instant;

use synthetic::{RUNS, TRIALS};
use tensorwright_random::SplitMix;
use tensorwright_records::{Event, Options, SqliteStore, Store};

/// Runs that one transaction writes.
const BATCH: u64 = 50;

/// Lookups that are timed.
const LOOKUPS: usize = 2000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments.next().map_or(Ok(10_000_000), |text| text.parse())?;
    let runs = (records / TRIALS).max(RUNS);
    if let Some(directory) = arguments.next() {
        let path = Path::new(&directory).join("ten_million.sqlite3");
        if !path.try_exists()? {
            fill(runs, &path)?;
        }
        return measure(runs, &path);
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("records.sqlite3");
    fill(runs, &path)?;
    measure(runs, &path)
}

fn fill(runs: u64, path: &Path) -> Result<()> {
    let mut store = SqliteStore::open(path, Options { durable: false, ..Options::default() })?;
    let start = Instant::now();
    for first in (0..runs).step_by(BATCH as usize) {
        let batch: Vec<Event> = (first..runs.min(first + BATCH)).flat_map(synthetic::run).collect();
        store.apply(&batch)?;
    }
    let (seconds, records) = (start.elapsed().as_secs_f64(), runs * TRIALS);
    println!("{records} records in {seconds:.1} s, {:.0} per second", records as f64 / seconds);
    Ok(())
}

fn measure(runs: u64, path: &Path) -> Result<()> {
    let mut store = SqliteStore::open(path, Options::default())?;
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

/// The median, the 99th percentile and the longest of times, in milliseconds.
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
