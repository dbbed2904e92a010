//! Worker threads that run inputs, and their watchdog.

use std::cell::RefCell;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::FuzzOptions;
use super::corpus::Corpus;
use super::report::Journal;
use super::targets::{Input, Reached};
use crate::processor::{Thread, thread_seconds};

/// The usual stack of a server thread, which must suffice for the front end.
const STACK_BYTES: usize = 2 << 20;

/// The most failures: more add no information.
const MAX_FAILURES: u64 = 20;

/// Inputs that exceed their limit by this factor are abandoned.
const HOPELESS: f64 = 30.0;

/// The exit code after an abandoned input.
pub(super) const HANGS: i32 = 3;

thread_local! {
    /// The message of this thread's last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The shared state of the threads.
struct Shared<'a> {
    options: &'a FuzzOptions,
    corpus: Corpus,
    next: AtomicU64,
    done: AtomicU64,
    read: AtomicU64,
    used: AtomicU64,
    failures: AtomicU64,
    finished: AtomicBool,
    /// The current input of each job.
    running: Vec<Mutex<Option<Running>>>,
}

/// A running input.
#[derive(Clone)]
struct Running {
    index: u64,
    thread: Thread,
    /// The thread's CPU time when the watchdog first saw the input.
    since: Option<f64>,
}

/// Runs all inputs in this process.
pub(crate) fn run_all(options: &FuzzOptions) -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|text| *text = info.to_string().replace('\n', " "));
    }));
    let shared = Shared {
        options,
        corpus: Corpus::load(options),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        read: AtomicU64::new(0),
        used: AtomicU64::new(0),
        failures: AtomicU64::new(0),
        finished: AtomicBool::new(false),
        running: (0..options.jobs).map(|_| Mutex::new(None)).collect(),
    };
    let all_well = thread::scope(|scope| {
        scope.spawn(|| watch(&shared));
        let spawn = |job| {
            let shared = &shared;
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, move || work(shared, job))
        };
        let jobs: Vec<_> = (0..options.jobs).map(spawn).collect();
        let well = |job: std::io::Result<thread::ScopedJoinHandle<'_, bool>>| {
            job.is_ok_and(|job| job.join().is_ok_and(|well| well))
        };
        // Joins all threads, not only up to the first failure: the watchdog runs until the last
        // ends.
        let well: Vec<bool> = jobs.into_iter().map(well).collect();
        shared.finished.store(true, Relaxed);
        well.into_iter().all(|well| well)
    });
    say_counts(&shared);
    if all_well { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

/// Runs inputs until none are left; false if the thread could not work.
fn work(shared: &Shared<'_>, job: usize) -> bool {
    let Ok(mut journal) = Journal::open(job) else {
        return false;
    };
    let thread = Thread::current();
    while shared.failures.load(Relaxed) < MAX_FAILURES {
        let offset = shared.next.fetch_add(1, Relaxed);
        if offset >= shared.options.count {
            break;
        }
        let index = shared.options.from.wrapping_add(offset);
        if journal.note(index).is_err() {
            return false;
        }
        set_running(shared, job, Some(Running { index, thread: thread.clone(), since: None }));
        if let Some(reason) = failure(shared, index) {
            shared.failures.fetch_add(1, Relaxed);
            say(&format!("fail {index} {}", reason.replace('\n', " ")));
        }
        set_running(shared, job, None);
        shared.done.fetch_add(1, Relaxed);
    }
    true
}

fn set_running(shared: &Shared<'_>, job: usize, what: Option<Running>) {
    if let Ok(mut running) = shared.running[job].lock() {
        *running = what;
    }
}

/// Runs one input; returns its failure, if any.
fn failure(shared: &Shared<'_>, index: u64) -> Option<String> {
    let mut input = shared.corpus.input(shared.options, index);
    if let Some(file) = &shared.options.replay {
        input.bytes = std::fs::read(file).unwrap_or_default();
    }
    let limit = time_limit(shared, input.bytes.len());
    let before = thread_seconds();
    let reached = match run_one(shared, &mut input) {
        Ok(reached) => reached,
        Err(message) => return Some(format!("panicked: {message}")),
    };
    let took = thread_seconds() - before;
    shared.read.fetch_add(u64::from(reached >= Reached::Read), Relaxed);
    shared.used.fetch_add(u64::from(reached == Reached::Used), Relaxed);
    (took > limit).then(|| format!("took {took:.1} s of CPU time, more than {limit:.1} s"))
}

fn run_one(shared: &Shared<'_>, input: &mut Input) -> Result<Reached, String> {
    let run = AssertUnwindSafe(|| (shared.options.target.run)(input));
    catch_unwind(run).map_err(|_| PANIC.with_borrow(String::clone))
}

/// The target's seconds per 100 kB, at least once.
fn time_limit(shared: &Shared<'_>, bytes: usize) -> f64 {
    shared.options.target.seconds * (bytes as f64 / 100_000.0).max(1.0)
}

/// Prints progress every second, and abandons inputs that hang.
fn watch(shared: &Shared<'_>) {
    let mut said = Instant::now();
    while !shared.finished.load(Relaxed) {
        thread::sleep(Duration::from_millis(20));
        if said.elapsed() < Duration::from_secs(1) {
            continue;
        }
        said = Instant::now();
        say_counts(shared);
        for running in &shared.running {
            let Ok(mut running) = running.lock() else { continue };
            let Some(running) = running.as_mut() else { continue };
            let now = running.thread.seconds();
            let since = *running.since.get_or_insert(now);
            // The smallest limit is a cheap test; only then is the input made again.
            if now - since >= HOPELESS * time_limit(shared, 0) {
                let input = shared.corpus.input(shared.options, running.index).bytes;
                if now - since >= HOPELESS * time_limit(shared, input.len()) {
                    std::process::exit(HANGS);
                }
            }
        }
    }
}

fn say_counts(shared: &Shared<'_>) {
    let [done, read, used] =
        [&shared.done, &shared.read, &shared.used].map(|count| count.load(Relaxed));
    say(&format!("counts {done} {read} {used}"));
}

/// Prints and flushes a line: data in the pipe survives a crash.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
