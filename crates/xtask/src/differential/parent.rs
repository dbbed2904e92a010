//! Parent process: distributes ranges of pairs and collects failures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::DifferentialOptions;
use super::case::Case;
use super::failure::Problem;
use super::minimise::minimise;
use super::process::{self, ChildReport};
use super::report::{self, MinimisedCase};
use super::schedules::{self, Kind};
use super::tally::Tally;
use super::worker::RUN;
use crate::summary::{Failure, Summary};

/// From this many pairs on, a run must have accepted every primitive.
const COVERAGE: u64 = 2000;

/// How many failures per signature are minimised and shown.
const EXAMPLES: usize = 2;

/// A run fails if the compiler of a device crashes for more than one in so many pairs, and for more
/// than a few.
const COMPILER_CRASHES: u64 = 20;

/// How many failures per title are minimised: each takes a minute, and more of them likely have the
/// same cause.
const MADE_SMALL: usize = 5;

struct Shared<'a> {
    options: &'a DifferentialOptions,
    started: Instant,
    next: AtomicU64,
    done: AtomicU64,
    finished: AtomicBool,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    tally: Tally,
    /// Counts of failures by title.
    failures: BTreeMap<String, usize>,
    /// Counts of failures by signature.
    signatures: BTreeMap<String, usize>,
    /// Counts of skipped failures that repeat others.
    repeated: BTreeMap<String, usize>,
    /// Pairs for which the compiler of a device crashed.
    compiler_crashes: u64,
    /// Minimised failures.
    kept: Vec<Failure>,
    /// An error of the run itself.
    broken: Option<String>,
}

/// Runs all pairs.
pub(crate) fn run(options: &DifferentialOptions) -> Result<ExitCode, String> {
    std::fs::create_dir_all(report::folder()).map_err(|error| error.to_string())?;
    let shared = Shared {
        options,
        started: Instant::now(),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        finished: AtomicBool::new(false),
        results: Mutex::default(),
    };
    thread::scope(|scope| {
        scope.spawn(|| watch(&shared));
        let jobs: Vec<_> = (0..options.jobs)
            .map(|job| {
                let shared = &shared;
                scope.spawn(move || work(shared, job))
            })
            .collect();
        jobs.into_iter().for_each(|job| drop(job.join()));
        shared.finished.store(true, Relaxed);
    });
    conclude(&shared)
}

/// Runs one case in a child and reports its problems.
pub(crate) fn replay(options: &DifferentialOptions, file: &Path) -> Result<ExitCode, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let case = Case::parse(&text)?;
    println!("{}", report::nest(&case));
    let heard = process::run(options)?;
    let problems: Vec<&Problem> =
        heard.failed.iter().chain(&heard.died).map(|(_, problem)| problem).collect();
    problems.iter().for_each(|problem| println!("{problem}"));
    println!("differential: {} problems", problems.len());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn conclude(shared: &Shared<'_>) -> Result<ExitCode, String> {
    let Ok(results) = shared.results.lock() else { return Err("a thread died".to_owned()) };
    print!("{}", results.tally.table());
    if let Some(why) = &results.broken {
        return Err(why.clone());
    }
    let mut well = results.failures.is_empty();
    let options = shared.options;
    let is_general = options.schedules == Kind::Random && options.programs.is_none();
    if shared.done.load(Relaxed) >= COVERAGE && is_general {
        let required = schedules::required();
        let missing = results.tally.missing(&required);
        if !missing.is_empty() {
            println!("differential: never accepted: {}", missing.join(", "));
            well = false;
        }
    }
    for (title, count) in &results.failures {
        let repeated = results.repeated.get(title).copied().unwrap_or(0);
        println!("differential: {title}: {count} failures, and {repeated} that look the same");
    }
    let (crashes, done) = (results.compiler_crashes, shared.done.load(Relaxed));
    if crashes > 0 {
        let most = 4.max(done / COMPILER_CRASHES);
        println!(
            "differential: the compiler of the device crashed for {crashes} pairs, of {most} at most"
        );
        well &= crashes <= most;
    }
    println!("{}", progress(shared, results.failures.values().sum()));
    summary(shared, &results).write(options.summary.as_deref())?;
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(shared: &Shared<'_>, results: &Results) -> Summary {
    Summary {
        tried: shared.done.load(Relaxed),
        skipped: results.tally.refused(RUN),
        failures: results.kept.clone(),
        repeated: results.repeated.values().map(|count| *count as u64).sum(),
    }
}

/// Runs ranges of pairs until none are left.
fn work(shared: &Shared<'_>, job: usize) {
    let options = shared.options;
    let chunk = options.chunk();
    while !is_over(shared) {
        let offset = shared.next.fetch_add(chunk, Relaxed);
        if offset >= options.count {
            break;
        }
        let count = chunk.min(options.count - offset);
        let from = options.from.wrapping_add(offset);
        let mut range = DifferentialOptions { from, count, ..options.clone() };
        if let Err(why) = run_range(shared, &mut range, job)
            && let Ok(mut results) = shared.results.lock()
        {
            results.broken = Some(why);
        }
        shared.done.fetch_add(count, Relaxed);
    }
}

/// Runs a range, and again without pairs that kill the child.
fn run_range(
    shared: &Shared<'_>,
    range: &mut DifferentialOptions,
    job: usize,
) -> Result<(), String> {
    let mut reported: Vec<u64> = Vec::new();
    loop {
        let ChildReport { cases, failed, died, tally } = process::run(range)?;
        for (index, problem) in failed.into_iter().chain(died.clone()) {
            // One problem per pair suffices, and a second run repeats those before the crash.
            if !reported.contains(&index) && !is_over(shared) {
                reported.push(index);
                if problem.is_of_compiler() {
                    shared.results.lock().map_err(|_| "a thread died")?.compiler_crashes += 1;
                    continue;
                }
                let case = cases.get(&index).and_then(|text| Case::parse(text).ok());
                report_failure(shared, index, case, &problem, job)?;
            }
        }
        match died {
            Some((index, _)) if !range.skip.contains(&index) => range.skip.push(index),
            Some((_, problem)) => return Err(format!("a process dies without reason: {problem}")),
            None => {
                if let Ok(mut results) = shared.results.lock() {
                    results.tally.add(&tally);
                }
                return Ok(());
            }
        }
    }
}

fn report_failure(
    shared: &Shared<'_>,
    index: u64,
    case: Option<Case>,
    problem: &Problem,
    job: usize,
) -> Result<(), String> {
    if let Some(signature) = problem.signature()
        && let Ok(mut results) = shared.results.lock()
    {
        let seen = results.signatures.entry(signature).or_default();
        *seen += 1;
        if *seen > EXAMPLES {
            *results.repeated.entry(problem.title()).or_default() += 1;
            return Ok(());
        }
    }
    let before = shared
        .results
        .lock()
        .map_or(0, |results| results.failures.get(&problem.title()).copied().unwrap_or_default());
    let small = match &case {
        Some(case) if before >= MADE_SMALL => {
            Some(MinimisedCase { case: case.clone(), problems: vec![problem.clone()] })
        }
        Some(case) => Some(minimise(shared.options, case, problem, job)?),
        // A crash while drawing the case.
        None => None,
    };
    let mut results = shared.results.lock().map_err(|_| "a thread died")?;
    *results.failures.entry(problem.title()).or_default() += 1;
    let file = report::write(shared.options, index, case.as_ref().zip(small.as_ref()), problem);
    results.kept.push(Failure { index, title: problem.title(), file });
    Ok(())
}

fn is_over(shared: &Shared<'_>) -> bool {
    shared.results.lock().is_ok_and(|results| {
        results.broken.is_some()
            || results.failures.values().sum::<usize>() >= shared.options.max_failures
    })
}

/// Prints progress every few seconds.
fn watch(shared: &Shared<'_>) {
    let mut said = Instant::now();
    while !shared.finished.load(Relaxed) {
        thread::sleep(Duration::from_millis(100));
        if said.elapsed() >= Duration::from_secs(5) {
            said = Instant::now();
            let failures = shared.results.lock().map_or(0, |r| r.failures.values().sum());
            eprintln!("{}", progress(shared, failures));
        }
    }
}

/// Progress, rate and remaining time.
fn progress(shared: &Shared<'_>, failures: usize) -> String {
    let (done, count) = (shared.done.load(Relaxed), shared.options.count);
    let seconds = shared.started.elapsed().as_secs_f64().max(1e-9);
    let rate = done as f64 / seconds;
    let left = count.saturating_sub(done) as f64 / rate.max(1e-9);
    let left = if done > 0 && done < count { format!(", {left:.0} s left") } else { String::new() };
    format!(
        "differential: {done} of {count} pairs in {seconds:.0} s, {rate:.0}/s{left}; \
         {failures} failed"
    )
}
