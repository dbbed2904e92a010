//! Parent process: restarts children after crashes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::FuzzOptions;
use super::corpus::Corpus;
use super::minimise::minimise;
use super::process::{self, Counts};
use super::report::{self, Failure};
use crate::summary::{self, Summary};

/// The most failures: more add no information.
const MAX_FAILURES: usize = 20;

/// Runs all inputs.
pub(crate) fn run(options: &FuzzOptions) -> Result<ExitCode, String> {
    let corpus = Corpus::load(options);
    println!(
        "fuzz: {}: {} inputs from index {} of seed {}, {} jobs, {} in the corpus",
        options.target.reads,
        options.count,
        options.from,
        options.seed,
        options.jobs,
        corpus.len()
    );
    let mut run = Run::new(options);
    let mut rest = options.clone();
    while rest.count > 0 && run.summary.failures.len() < MAX_FAILURES {
        let before = run.counts;
        let heard = process::run(&rest, &mut |counts| run.tell(before, counts))?;
        run.counts = sum(before, heard.counts);
        for (index, reason) in heard.failed {
            run.report(&corpus, index, reason);
        }
        if heard.died.is_none() {
            run.summary.tried = options.count;
            break;
        }
        // The running inputs are repeated one by one, then the run continues after them.
        let running = report::running(&rest);
        for index in &running {
            let one = FuzzOptions { from: *index, count: 1, jobs: 1, ..options.clone() };
            let alone = process::run(&one, &mut |_| {})?;
            if let Some(reason) = alone.died {
                run.report(&corpus, *index, reason);
            }
        }
        let next = running.iter().max().map_or(rest.from, |last| last.wrapping_add(1));
        if next == rest.from {
            return Err("a process ends before it has begun".to_owned());
        }
        let passed = next.wrapping_sub(rest.from).min(rest.count);
        run.summary.tried += passed;
        (rest.from, rest.count) = (next, rest.count - passed);
    }
    report::clean(options);
    println!("{}", run.progress());
    run.summary.write(options.summary.as_deref())?;
    Ok(if run.summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the contents of a file as the first input.
pub(crate) fn replay(options: &FuzzOptions) -> Result<ExitCode, String> {
    let one = FuzzOptions { count: 1, jobs: 1, ..options.clone() };
    let heard = process::run(&one, &mut |_| {})?;
    report::clean(&one);
    let problems = heard.failed.into_iter().map(|(_, reason)| reason).chain(heard.died);
    let problems: Vec<String> = problems.collect();
    problems.iter().for_each(|problem| println!("fuzz: {problem}"));
    println!("fuzz: {} problems", problems.len());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Run<'a> {
    options: &'a FuzzOptions,
    started: Instant,
    said: Instant,
    counts: Counts,
    summary: Summary,
}

impl<'a> Run<'a> {
    fn new(options: &'a FuzzOptions) -> Self {
        let now = Instant::now();
        let summary = Summary::default();
        Self { options, started: now, said: now, counts: Counts::default(), summary }
    }

    /// Minimises, stores and prints a failure.
    fn report(&mut self, corpus: &Corpus, index: u64, reason: String) {
        if self.summary.failures.iter().any(|failure| failure.index == index) {
            return;
        }
        let input = corpus.input(self.options, index).bytes;
        let input = minimise(self.options, index, input);
        let title = reason.chars().take(100).collect();
        let file = report::write(self.options, &Failure { index, reason, input });
        self.summary.failures.push(summary::Failure { index, title, file });
    }

    /// Prints progress every few seconds.
    fn tell(&mut self, before: Counts, now: Counts) {
        self.counts = sum(before, now);
        if self.said.elapsed() >= Duration::from_secs(5) {
            self.said = Instant::now();
            println!("{}", self.progress());
        }
    }

    /// Progress, rate and remaining time.
    fn progress(&self) -> String {
        let Counts { done, read, used } = self.counts;
        let (count, failed) = (self.options.count, self.summary.failures.len());
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        let rate = done as f64 / seconds;
        let left = count.saturating_sub(done) as f64 / rate.max(1e-9);
        let left =
            if done > 0 && done < count { format!(", {left:.0} s left") } else { String::new() };
        format!(
            "fuzz: {done} of {count} {} in {seconds:.0} s, {rate:.0}/s{left}; {read} read, {used} \
             used; {failed} failed",
            self.options.target.name
        )
    }
}

fn sum(one: Counts, other: Counts) -> Counts {
    Counts { done: one.done + other.done, read: one.read + other.read, used: one.used + other.used }
}
