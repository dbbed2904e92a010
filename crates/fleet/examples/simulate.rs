//! Simulates a fleet on a real server and measures it:
//!
//! ```text
//! eval "$(.ci/postgres target/postgres)"
//! cargo run --release -p tensorwright-fleet --example simulate -- \
//!     [--workers 1000] [--seconds 20] [--agents 32] [--fastest 50] [--slowest 500] [--runs 40] [--url URL]
//! ```
//!
//! An agent is a connection that leases and completes for its share of the workers, which take
//! between `fastest` and `slowest` milliseconds per item. Runs keep items waiting. At the end every
//! item must have exactly one outcome.
#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tensorwright_fleet::{Completion, CompletionStatus, Fleet, Item, Lease, Run};
use tensorwright_outcome::{Outcome, Timing};
use tensorwright_random::SplitMix;
use tensorwright_records::postgres::{Client, Settings};
use tensorwright_records::{Key, Location, Origin, ProgramInfo, RunId, RunInfo, Url};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const CLASS: &str = "simulated";
const LEASE: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_secs(120);

/// The parameters of a simulation.
struct Wishes {
    workers: u64,
    seconds: u64,
    agents: u64,
    fastest: u64,
    slowest: u64,
    runs: u64,
}

/// The measurements.
#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    stored: AtomicU64,
    again: AtomicU64,
    fenced: AtomicU64,
    enqueued: AtomicU64,
    /// CPU time of the server's processes in seconds, if they are on this machine.
    server: Mutex<Option<f64>>,
    waits: Mutex<Vec<u32>>,
    completions: Mutex<Vec<u32>>,
}

fn main() -> Result<()> {
    let mut wishes =
        Wishes { workers: 1000, seconds: 20, agents: 32, fastest: 50, slowest: 500, runs: 40 };
    let mut server = std::env::var("TENSORWRIGHT_TEST_POSTGRES").ok();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let text = arguments.next().ok_or("an option without a value")?;
        match name.as_str() {
            "--url" => server = Some(text),
            "--workers" => wishes.workers = text.parse()?,
            "--seconds" => wishes.seconds = text.parse()?,
            "--agents" => wishes.agents = text.parse()?,
            "--fastest" => wishes.fastest = text.parse()?,
            "--slowest" => wishes.slowest = text.parse()?,
            "--runs" => wishes.runs = text.parse()?,
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    let server = server.ok_or("name a server with --url")?;
    let schema = format!("s{}", RunId::fresh());
    let Location::Server(url) = format!("{server}?schema={schema}").parse()? else {
        return Err("not a server URL".into());
    };
    let mut owner = Fleet::install(&url)?;
    owner.add_class(CLASS)?;
    let client = Client::connect(&Settings::of(&url)?, LIMIT)?;
    client.batch("INSERT INTO permits SELECT session_user, id FROM classes", LIMIT)?;
    let wal = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::BIGINT";
    let before = number(&client, wal)?;
    let result = simulate(&url, &wishes).and_then(|seen| {
        let bytes = number(&client, wal)? - before;
        let stored = seen.stored.load(Ordering::Relaxed).max(1) as f64;
        report(&client, &wishes, &seen)?;
        print!("{:.0} bytes of log per item", bytes as f64 / stored);
        match *seen.server.lock().map_err(|_| "a thread panicked")? {
            Some(seconds) => println!(
                "; the server took {:.2} ms of a processor per item",
                1e3 * seconds / stored
            ),
            None => println!(),
        }
        Ok(())
    });
    client.batch(&format!("DROP SCHEMA {schema} CASCADE"), LIMIT)?;
    result
}

fn number(client: &Client, sql: &str) -> Result<i64> {
    Ok(client.query(sql, &[], LIMIT)?.first().ok_or("no answer")?.get(0))
}

/// The CPU time of all PostgreSQL processes on this machine, in seconds.
fn server_time() -> f64 {
    let mut ticks = 0.0;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((name, rest)) = text.split_once(") ") else { continue };
        if name.ends_with("(postgres") {
            // Its own, and of children that have ended.
            let times = rest.split(' ').skip(11).take(4);
            ticks += times.filter_map(|time| time.parse::<f64>().ok()).sum::<f64>();
        }
    }
    ticks / 100.0
}

fn simulate(url: &Url, wishes: &Wishes) -> Result<Seen> {
    let seen = Seen::default();
    let before = server_time();
    std::thread::scope(|scope| -> Result<()> {
        let mut threads = Vec::new();
        for run in 0..wishes.runs {
            let seen = &seen;
            threads.push(scope.spawn(move || produce(url, run, wishes, seen)));
        }
        for agent in 0..wishes.agents {
            let seen = &seen;
            threads.push(scope.spawn(move || work(url, agent, wishes, seen)));
        }
        std::thread::sleep(Duration::from_secs(wishes.seconds));
        let time = Some(server_time() - before).filter(|time| *time > 0.0);
        *seen.server.lock().map_err(|_| "a thread panicked")? = time;
        seen.stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    Ok(seen)
}

/// A run that keeps items waiting.
fn produce(url: &Url, seed: u64, wishes: &Wishes, seen: &Seen) -> Result<()> {
    let mut fleet = Fleet::connect(url)?;
    let mut random = SplitMix::new(seed);
    let program = ProgramInfo {
        hash: format!("p{seed}"),
        family: "f".into(),
        def: "gemm".into(),
        text: "def gemm() -> () {}".into(),
        ..ProgramInfo::default()
    };
    let key = Key::new(&program, "simulated", 1, "0");
    let run = Run::new(key, program, RunInfo::new("random", seed), CLASS);
    fleet.begin_run(&run)?;
    // About two seconds of work for all workers waits, shared by the runs.
    let rate = wishes.workers * 1000 / ((wishes.fastest + wishes.slowest) / 2).max(1);
    let wanted = (2 * rate / wishes.runs).clamp(8, 10_000);
    let mut number = 0;
    while !seen.stop.load(Ordering::Relaxed) {
        let done = seen.stored.load(Ordering::Relaxed);
        let ahead = seen.enqueued.load(Ordering::Relaxed).saturating_sub(done);
        if ahead > wanted * wishes.runs {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let some: Vec<Item> =
            (0..50.min(wanted)).map(|at| item(number + at, &mut random)).collect();
        number += some.len() as u64;
        fleet.insist(LIMIT, |fleet| fleet.enqueue(&run.info.id, &some))?;
        seen.enqueued.fetch_add(some.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// The steps of a tiled matrix product, about a kilobyte.
fn item(number: u64, random: &mut SplitMix) -> Item {
    let mut schedule = String::new();
    for stage in 0..20 {
        schedule +=
            &format!("C: split m.{stage} {} -> m.{stage}.0 m.{stage}.1\n", random.below(64));
    }
    let point = (0..16).map(|_| random.below(40) as u32).collect();
    let (origin, algorithm) = (Origin::from("random"), "as written".to_owned());
    Item { number, origin, algorithm, point, schedule }
}

/// A connection that acts for many workers.
fn work(url: &Url, agent: u64, wishes: &Wishes, seen: &Seen) -> Result<()> {
    let mut fleet = Fleet::connect(url)?;
    let mut random = SplitMix::new(1000 + agent);
    let worker = fleet.join(&format!("agent-{agent}"), CLASS, "simulated")?;
    let devices = (wishes.workers / wishes.agents).max(1) as usize;
    let mut busy: Vec<(Instant, Lease)> = Vec::new();
    let (mut waits, mut completions) = (Vec::new(), Vec::new());
    let mut swept = Instant::now();
    loop {
        let stops = seen.stop.load(Ordering::Relaxed);
        let now = Instant::now();
        let (ready, still): (Vec<_>, Vec<_>) =
            busy.drain(..).partition(|(end, _)| *end <= now || stops);
        busy = still;
        if !ready.is_empty() {
            let done: Vec<Completion> = ready
                .into_iter()
                .map(|(_, lease)| Completion { lease, outcome: outcome(&mut random) })
                .collect();
            let begun = Instant::now();
            for answer in fleet.insist(LIMIT, |fleet| fleet.complete(worker, &done))? {
                let counter = match answer {
                    CompletionStatus::Stored => &seen.stored,
                    CompletionStatus::Again => &seen.again,
                    CompletionStatus::Fenced => &seen.fenced,
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            completions.push(micros(begun));
        }
        if stops {
            break;
        }
        if busy.len() < devices {
            let begun = Instant::now();
            let free = (devices - busy.len()) as u32;
            let leased = fleet.insist(LIMIT, |fleet| fleet.lease(worker, free.min(64), LEASE))?;
            waits.push(micros(begun));
            for one in leased {
                let time = wishes.fastest + random.below((wishes.slowest - wishes.fastest).max(1));
                busy.push((Instant::now() + Duration::from_millis(time), one.lease));
            }
        }
        if swept.elapsed() > Duration::from_secs(1) {
            fleet.insist(LIMIT, Fleet::sweep)?;
            swept = Instant::now();
        }
        // Items done meanwhile are completed together.
        std::thread::sleep(Duration::from_millis((wishes.slowest / 10).clamp(1, 50)));
    }
    for (all, own) in [(&seen.waits, waits), (&seen.completions, completions)] {
        all.lock().map_err(|_| "a thread panicked")?.extend(own);
    }
    Ok(())
}

fn micros(begun: Instant) -> u32 {
    u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX)
}

fn outcome(random: &mut SplitMix) -> Outcome {
    if random.below(8) == 0 {
        return Outcome::Illegal {
            rule: "registers".into(),
            reason: format!("{} of 32", random.below(200)),
        };
    }
    let seconds = 1e-3 * (1.0 + random.unit());
    Outcome::Measured(Timing {
        seconds,
        raw_seconds: seconds,
        spread: 0.01,
        runs: 9,
        ..Timing::default()
    })
}

fn report(client: &Client, wishes: &Wishes, seen: &Seen) -> Result<()> {
    let count = |sql: &str| number(client, sql);
    let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (stored, enqueued) = (value(&seen.stored), value(&seen.enqueued));
    let asked = wishes.workers as f64 * 2000.0 / (wishes.fastest + wishes.slowest) as f64;
    println!(
        "{} workers, {} agents, {} s: {:.0} items/s of {asked:.0} asked; {stored} stored, {} again, {} fenced",
        wishes.workers,
        wishes.agents,
        wishes.seconds,
        stored as f64 / wishes.seconds as f64,
        value(&seen.again),
        value(&seen.fenced)
    );
    for (name, times) in [("lease", &seen.waits), ("complete", &seen.completions)] {
        let mut times = times.lock().map_err(|_| "a thread panicked")?.clone();
        times.sort_unstable();
        let at = |share: f64| {
            times
                .get((times.len().saturating_sub(1) as f64 * share) as usize)
                .map_or(0.0, |time| f64::from(*time) / 1e3)
        };
        println!(
            "{name:8} median {:.1} ms, p99 {:.1} ms, longest {:.1} ms, {} calls",
            at(0.5),
            at(0.99),
            at(1.0),
            times.len()
        );
    }
    let items = count("SELECT count(*) FROM items")?;
    let trials = count("SELECT count(*) FROM trials")?;
    let done = count("SELECT count(*) FROM done")?;
    let waiting = count("SELECT count(*) FROM ready")? + count("SELECT count(*) FROM leased")?;
    let bytes = count(
        "SELECT (pg_total_relation_size('trials') + pg_total_relation_size('items') + pg_total_relation_size('done')
                 + pg_total_relation_size('texts'))::BIGINT",
    )?;
    println!(
        "{items} items: {done} done, {trials} trials, {waiting} wait; {} bytes per trial",
        bytes / trials.max(1)
    );
    let is_whole = items.cast_unsigned() == enqueued
        && done == trials
        && done.cast_unsigned() == stored
        && items == done + waiting;
    if is_whole { Ok(()) } else { Err("items were lost or counted twice".into()) }
}
