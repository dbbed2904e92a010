//! Child process: runs pairs and reports progress and failures on stdout.
//!
//! ```text
//! case 17 def kernel\nsizes ... what pair 17 is
//! at 17 llvm                    the code of pair 17 is about to run
//! fail 17 llvm wrong T: 3 of 40 elements differ ...
//! tally 12 3 split              12 splits were accepted, 3 refused
//! ```

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use super::DifferentialOptions;
use super::aarch64::Aarch64;
use super::batch::BatchRunner;
use super::c::C;
use super::case::Case;
use super::cuda::Cuda;
use super::draw::{Drawn, SCHEDULES, Subject};
use super::failure::{Kind, Problem, Suspect, in_one_line};
use super::llvm::Llvm;
use super::names::Renamer;
use super::opencl::OpenCl;
use super::pair::{NotRun, Pair};
use super::programs::Programs;
use super::tally::Tally;

/// Counts pairs that were run and skipped.
pub(crate) const RUN: &str = "(run)";

/// The kernels per program: compile time per kernel grows with their number.
const BATCH: usize = 64;

/// The code generators that a child uses.
struct Emitters {
    llvm: Option<Llvm>,
    opencl: Option<OpenCl>,
    /// Runners in other processes.
    batch_runners: Vec<BatchRunner>,
}

impl Emitters {
    fn new(options: &DifferentialOptions) -> Result<Self, String> {
        let uses = |emitter| options.emitters.contains(&emitter);
        let llvm = uses(Suspect::Llvm).then(Llvm::new).transpose()?;
        let opencl = uses(Suspect::OpenCl).then(|| OpenCl::new(&options.device)).transpose()?;
        let mut batch_runners = Vec::new();
        if uses(Suspect::C) {
            batch_runners.push(BatchRunner::new(C { sanitize: options.sanitize })?);
        }
        if uses(Suspect::Aarch64) {
            batch_runners.push(BatchRunner::new(Aarch64::new()?)?);
        }
        if uses(Suspect::Cuda) {
            batch_runners.push(BatchRunner::new(Cuda::new()?)?);
        }
        Ok(Self { llvm, opencl, batch_runners })
    }

    /// Runs a pair in this process.
    fn check_here(&self, index: u64, pair: &Pair) {
        let check = |suspect, check: &dyn Fn() -> Result<(), Problem>| {
            say_at(index, suspect);
            if let Err(problem) = check() {
                say_failed(index, &problem);
            }
        };
        if let Some(llvm) = &self.llvm {
            check(Suspect::Llvm, &|| llvm.check(pair));
        }
        if let Some(opencl) = &self.opencl {
            check(Suspect::OpenCl, &|| opencl.check(pair));
        }
    }

    /// Runs pairs in other processes.
    fn check_later(
        &self,
        options: &DifferentialOptions,
        pairs: &[(u64, Pair)],
    ) -> Result<(), String> {
        for batch_runner in &self.batch_runners {
            let suspect = batch_runner.suspect();
            let wanted = |(index, pair): &&(u64, Pair)| match suspect {
                Suspect::C => options.makes_c(*index),
                Suspect::Cuda => pair.device.is_some(),
                _ => true,
            };
            let batch: Vec<&(u64, Pair)> = pairs.iter().filter(wanted).collect();
            for some in batch.chunks(BATCH) {
                say_at(some[0].0, suspect);
                let pairs: Vec<&Pair> = some.iter().map(|(_, pair)| pair).collect();
                batch_runner.check(&pairs, &mut |position, problem| {
                    if let Some((index, _)) = some.get(position) {
                        say_failed(*index, &problem);
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// Runs the pairs of a range.
pub(crate) fn run(options: &DifferentialOptions) -> Result<ExitCode, String> {
    let programs = Programs::load(options.programs.as_deref())?;
    let emitters = Emitters::new(options)?;
    let mut renamer = options.renamed.then(Renamer::new).transpose()?;
    let (mut tally, mut pairs) = (Tally::default(), Vec::new());
    let mut subject: Option<(u64, Option<Subject>)> = None;
    for index in options.from..options.from.saturating_add(options.count) {
        if options.skip.contains(&index) {
            continue;
        }
        say_at(index, Suspect::Schedule);
        let number = index / SCHEDULES;
        if subject.as_ref().is_none_or(|(of, _)| *of != number) {
            let drawn =
                Subject::of(&programs, options.schedules, (options.seed, number), &mut tally);
            let drawn = drawn.map_err(|(case, problem)| say_broken(index, &case, &problem));
            subject = Some((number, drawn.ok()));
        }
        let Some((_, Some(subject))) = &subject else { continue };
        if let Some(renamer) = &mut renamer {
            rename(renamer, options, subject, index, &mut tally);
            continue;
        }
        if let Some(pair) = ready(options, subject, index, &mut tally) {
            emitters.check_here(index, &pair);
            if !emitters.batch_runners.is_empty() {
                pairs.push((index, pair));
            }
        }
    }
    emitters.check_later(options, &pairs)?;
    tally.lines().for_each(|line| say(&format!("tally {line}")));
    Ok(ExitCode::SUCCESS)
}

/// Compares a pair with a renamed copy.
fn rename(
    renamer: &mut Renamer,
    options: &DifferentialOptions,
    subject: &Subject,
    index: u64,
    tally: &mut Tally,
) {
    let Some(drawn) = drawn(options, subject, index, tally) else { return };
    match renamer.check(index, &drawn.case) {
        Ok(()) => tally.count(RUN, true),
        Err(problem) => say_failed(index, &problem),
    }
}

/// Prepares a pair; `None` if it is skipped.
fn ready(
    options: &DifferentialOptions,
    subject: &Subject,
    index: u64,
    tally: &mut Tally,
) -> Option<Pair> {
    let drawn = drawn(options, subject, index, tally)?;
    let nest = drawn.read(&subject.program).map_err(|problem| say_failed(index, &problem)).ok()?;
    let scheduled = (Rc::clone(&subject.program), nest);
    let is_promised = options.schedules.is_promised();
    let name = format!("kernel_{index}");
    match Pair::ready(&drawn.case, scheduled, &subject.oracle, &name, is_promised) {
        Ok(pair) => {
            tally.count(RUN, true);
            Some(pair)
        }
        Err(NotRun::Problem(problem)) => {
            say_failed(index, &problem);
            None
        }
        Err(NotRun::Skipped(why)) => {
            tally.count(RUN, false);
            tally.count(&format!("(not run: {why})"), false);
            None
        }
    }
}

/// Draws a pair and prints it; `None` if there is none.
fn drawn(
    options: &DifferentialOptions,
    subject: &Subject,
    index: u64,
    tally: &mut Tally,
) -> Option<Drawn> {
    let drawn = match subject.draw((options.seed, index), tally) {
        Ok(Some(drawn)) => drawn,
        Ok(None) => {
            tally.count(RUN, false);
            return None;
        }
        Err((case, problem)) => {
            say_broken(index, &case, &problem);
            return None;
        }
    };
    say(&format!("case {index} {}", in_one_line(&drawn.case.to_string())));
    Some(drawn)
}

/// Runs one case.
pub(crate) fn replay(options: &DifferentialOptions, file: &Path) -> Result<ExitCode, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let case = Case::parse(&text)?;
    say_at(0, Suspect::Schedule);
    let is_kept = Case::is_of_tuning(&text);
    let pair = Pair::of(&case, "kernel_0", is_kept || options.schedules.is_promised());
    if let Some(why) = case.refused() {
        let refused = matches!(&pair, Err(NotRun::Problem(problem)) if problem.refuses(why));
        if !refused {
            let message = format!("is not refused because of `{why}`");
            say_failed(0, &Problem::new(Suspect::Schedule, Kind::Wrong, message));
        }
        return Ok(ExitCode::SUCCESS);
    }
    match pair {
        Ok(pair) => {
            let emitters = Emitters::new(options)?;
            // Other processes first: they cannot crash this one.
            let pairs = [(0, pair)];
            emitters.check_later(options, &pairs)?;
            pairs.iter().for_each(|(index, pair)| emitters.check_here(*index, pair));
        }
        Err(NotRun::Problem(problem)) => say_failed(0, &problem),
        // A skipped defect must not count as success.
        Err(NotRun::Skipped(why)) if is_kept => {
            let message = format!("was not run: {why}");
            say_failed(0, &Problem::new(Suspect::Schedule, Kind::Refused, message));
        }
        Err(NotRun::Skipped(_)) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn say_broken(index: u64, case: &Case, problem: &Problem) {
    say(&format!("case {index} {}", in_one_line(&case.to_string())));
    say_failed(index, problem);
}

fn say_at(index: u64, suspect: Suspect) {
    say(&format!("at {index} {}", suspect.name()));
}

fn say_failed(index: u64, problem: &Problem) {
    say(&format!("fail {index} {}", problem.line()));
}

/// Prints and flushes a line: data in the pipe survives a crash. Ignores a closed pipe.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
