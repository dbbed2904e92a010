//! The threads that run the inputs, and the one that watches them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::Options;
use super::corpus::{Corpus, Input};
use super::report::{self, Failure, Journal};
use super::target_under_test::{self, Reached};

/// What a thread of a server usually has: the front end must make do with it.
const STACK_BYTES: usize = 2 << 20;

/// More failures than this say nothing new.
const MAX_FAILURES: u64 = 20;

/// An input that takes this many times as long as it may is not waited for.
const HOPELESS: u32 = 30;

thread_local! {
    /// What the last panic of this thread said.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What the threads share.
struct Shared<'a> {
    options: &'a Options,
    corpus: &'a Corpus,
    next: AtomicU64,
    done: AtomicU64,
    checked: AtomicU64,
    bound: AtomicU64,
    failures: AtomicU64,
    finished: AtomicBool,
    /// What each job is running, and since when.
    running: Vec<Mutex<Option<(u64, Instant)>>>,
}

/// Runs all inputs in this process.
pub(crate) fn run_all(options: &Options, corpus: &Corpus) -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|text| *text = info.to_string().replace('\n', " "));
    }));
    let shared = Shared {
        options,
        corpus,
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        checked: AtomicU64::new(0),
        bound: AtomicU64::new(0),
        failures: AtomicU64::new(0),
        finished: AtomicBool::new(false),
        running: (0..options.jobs).map(|_| Mutex::new(None)).collect(),
    };
    let started = Instant::now();
    let all_well = thread::scope(|scope| {
        scope.spawn(|| watch(&shared, started));
        let spawn = |job| {
            let shared = &shared;
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, move || work(shared, job))
        };
        let jobs: Vec<_> = (0..options.jobs).map(spawn).collect();
        let well = |job: std::io::Result<thread::ScopedJoinHandle<'_, bool>>| {
            job.is_ok_and(|job| job.join().is_ok_and(|well| well))
        };
        // All of them, not up to the first that failed: the watch goes on until the last is done.
        let well: Vec<bool> = jobs.into_iter().map(well).collect();
        shared.finished.store(true, Relaxed);
        well.into_iter().all(|well| well)
    });
    let failures = shared.failures.load(Relaxed);
    println!("{}; {failures} failed", progress(&shared, started));
    if failures == 0 && all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs inputs until there are none left; false if it could not do its work.
fn work(shared: &Shared<'_>, job: usize) -> bool {
    let Ok(mut journal) = Journal::open(job) else {
        return false;
    };
    while shared.failures.load(Relaxed) < MAX_FAILURES {
        let offset = shared.next.fetch_add(1, Relaxed);
        if offset >= shared.options.count {
            break;
        }
        let index = shared.options.from.wrapping_add(offset);
        if journal.note(index).is_err() {
            return false;
        }
        set_running(shared, job, Some((index, Instant::now())));
        if let Some(reason) = failure(shared, index) {
            shared.failures.fetch_add(1, Relaxed);
            let input = shared.corpus.input(shared.options, index).bytes;
            report::write(shared.options, &Failure { index, reason, input });
        }
        set_running(shared, job, None);
        shared.done.fetch_add(1, Relaxed);
    }
    true
}

fn set_running(shared: &Shared<'_>, job: usize, what: Option<(u64, Instant)>) {
    if let Ok(mut running) = shared.running[job].lock() {
        *running = what;
    }
}

/// Runs one input; what is wrong with how it went, if anything.
fn failure(shared: &Shared<'_>, index: u64) -> Option<String> {
    // An input that seems slow gets a second chance: the machine may have been busy elsewhere.
    let mut fastest = Duration::MAX;
    let mut limit = Duration::ZERO;
    for _ in 0..2 {
        let mut input = shared.corpus.input(shared.options, index);
        limit = time_limit(input.bytes.len());
        let started = Instant::now();
        let reached = match run_one(&mut input) {
            Ok(reached) => reached,
            Err(message) => return Some(format!("panicked: {message}")),
        };
        fastest = fastest.min(started.elapsed());
        if fastest <= limit {
            shared.checked.fetch_add(u64::from(reached >= Reached::Checked), Relaxed);
            shared.bound.fetch_add(u64::from(reached == Reached::Bound), Relaxed);
            return None;
        }
    }
    Some(format!("took {:.1} s, more than {:.1} s", fastest.as_secs_f64(), limit.as_secs_f64()))
}

fn run_one(input: &mut Input) -> Result<Reached, String> {
    let run =
        AssertUnwindSafe(|| target_under_test::run(&input.bytes, &input.sizes, &mut input.rng));
    catch_unwind(run).map_err(|_| PANIC.with_borrow(String::clone))
}

/// A second for each 100 kB, and one at least.
fn time_limit(bytes: usize) -> Duration {
    Duration::from_secs_f64((bytes as f64 / 100_000.0).max(1.0))
}

/// Says every few seconds how far it is, and gives up on an input that does not end.
fn watch(shared: &Shared<'_>, started: Instant) {
    let mut said = started;
    while !shared.finished.load(Relaxed) {
        thread::sleep(Duration::from_millis(50));
        if said.elapsed() >= Duration::from_secs(5) {
            said = Instant::now();
            println!("{}", progress(shared, started));
        }
        for running in &shared.running {
            let Some((index, since)) = running.lock().ok().and_then(|running| *running) else {
                continue;
            };
            // The least limit is cheap to compare with; only then is the input made again.
            if since.elapsed() < HOPELESS * time_limit(0) {
                continue;
            }
            let input = shared.corpus.input(shared.options, index).bytes;
            if since.elapsed() >= HOPELESS * time_limit(input.len()) {
                let reason = format!("still running after {} s", since.elapsed().as_secs());
                report::write(shared.options, &Failure { index, reason, input });
                std::process::exit(1);
            }
        }
    }
}

/// How far it is, how fast, and how long it will take.
fn progress(shared: &Shared<'_>, started: Instant) -> String {
    let (done, count) = (shared.done.load(Relaxed), shared.options.count);
    let seconds = started.elapsed().as_secs_f64().max(1e-9);
    let rate = done as f64 / seconds;
    let left = count.saturating_sub(done) as f64 / rate.max(1e-9);
    let left = if done < count { format!(", {left:.0} s left") } else { String::new() };
    format!(
        "fuzz: {done} of {count} inputs in {seconds:.0} s, {rate:.0}/s{left}; {} checked, {} bound",
        shared.checked.load(Relaxed),
        shared.bound.load(Relaxed)
    )
}
