//! Several operators with a common budget.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tensorwright::{Diagnostics, Program};
use tensorwright_package::Sizes;
use tensorwright_records::Journal;
use tensorwright_tuner::{Allocation, Budget, Defects, Status, Tuned, Tuner};

use super::progress::Display;
use super::{Around, TRIALS, TuneArgs, journal, summary, tune, tuner};
use crate::args::Format;
use crate::failure::{Failure, InFormat, Outcome};
use crate::{files, report};

/// An operator that is tuned with others.
struct Job {
    program: Program,
    tuner: Tuner,
    weight: f64,
    trials: u64,
    last: Option<Tuned>,
    defects: Defects,
}

/// Tunes all definitions of a file that the sizes suffice for.
pub(super) fn all(args: &TuneArgs, file: &Path, around: &Around) -> Outcome {
    let format = args.output.format;
    let module = files::module(file).in_format(format)?;
    let given = crate::sizes::exact(&args.sizes).in_format(format)?;
    let mut jobs = Vec::new();
    for def in module.defs() {
        // Each definition takes the sizes that it knows.
        let names = [def.sizes(), def.integer_scalars()].concat();
        let sizes: BTreeMap<String, i64> = given
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .map(|(name, size)| (name.clone(), *size))
            .collect();
        match def.bind(sizes.clone()) {
            Ok(program) => {
                let tuner = tuner(args, &program, sizes, around)?;
                jobs.push(Job {
                    program,
                    tuner,
                    weight: 1.0,
                    trials: 0,
                    last: None,
                    defects: Defects::default(),
                });
            }
            Err(diagnostics) => eprintln!("{} is left out: {}", def.name(), first(&diagnostics)),
        }
    }
    let budget = Budget::asked(args.trials, args.time, TRIALS.saturating_mul(jobs.len() as u64));
    run(args, jobs, budget, around)
}

/// Tunes the operators of a manifest.
pub(super) fn manifest(args: &TuneArgs, around: &Around) -> Outcome {
    let format = args.output.format;
    let Some(path) = &args.manifest else { return Ok(()) };
    let manifest = files::manifest(path).in_format(format)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut jobs = Vec::new();
    for operator in &manifest.operators {
        let module = files::module(&folder.join(&operator.file)).in_format(format)?;
        let def = super::super::chosen_def(&module, operator.def.as_deref()).in_format(format)?;
        let sizes = Sizes::new(&operator.sizes)
            .map_err(|message| {
                manifest.problem(
                    operator,
                    message,
                    "write an operator for each value of one of them",
                )
            })
            .in_format(format)?;
        // Of a size that varies, the values are tuned that kernels are made for.
        let programs = sizes.programs(&def).in_format(format)?;
        let weight = operator.weight / programs.len() as f64;
        for (sizes, program) in programs {
            let mut tuner = tuner(args, &program, sizes, around)?
                .threads(operator.threads)
                .precision(args.target.precision.unwrap_or(manifest.precision_of(operator)))
                .seed(args.seed.max(manifest.tune.seed));
            if let (None, Some(mode)) = (args.mode, manifest.tune.mode) {
                tuner = tuner.mode(mode);
            }
            if let (None, Some(name)) = (&args.strategy, &manifest.tune.strategy) {
                tuner = tuner.strategy(name);
            }
            jobs.push(Job {
                program,
                tuner,
                weight,
                trials: 0,
                last: None,
                defects: Defects::default(),
            });
        }
    }
    let time = args.time.or(manifest.tune.time);
    let trials = args.trials.or(manifest.tune.trials);
    let budget = Budget::asked(trials, time, TRIALS.saturating_mul(jobs.len() as u64));
    run(args, jobs, budget, around)
}

/// Gives slices of the budget to the operators where they pay most.
fn run(args: &TuneArgs, mut jobs: Vec<Job>, budget: Budget, around: &Around) -> Outcome {
    if args.fleet.fleet {
        return together(args, jobs, budget);
    }
    let begun = Instant::now();
    let mut journal = journal(args)?;
    let weights: Vec<f64> = jobs.iter().map(|job| job.weight).collect();
    let mut allocation = Allocation::new(&weights);
    let mut left = budget.trials;
    while left != Some(0) && !around.stop.load(Ordering::Relaxed) {
        let Some((place, slice)) = allocation.next() else { break };
        let time = budget.time.map(|time| time.saturating_sub(begun.elapsed()));
        if time.is_some_and(|time| time < Duration::from_millis(500)) {
            break;
        }
        let job = &mut jobs[place];
        if args.output.format == Format::Text {
            eprintln!("{} ({} of {} operators)", job.program.name(), place + 1, weights.len());
        }
        let trials = Some(left.map_or(slice, |left| slice.min(left)));
        let slice = Budget { trials, time };
        let tuned = tune(&job.tuner.clone().budget(slice), &mut journal, args)?;
        job.tuner = job.tuner.clone().continued();
        let exhausted = tuned.status == Status::Exhausted;
        allocation.observe(place, tuned.winner.seconds, tuned.progress.trials, exhausted);
        left = left.map(|left| left.saturating_sub(tuned.progress.trials));
        job.trials += tuned.progress.trials;
        job.defects.add(&tuned.defects);
        job.last = Some(tuned);
    }
    finish(args, &jobs)
}

/// Tunes all operators at the same time: a fleet shares its machines between runs, and each gets its share of the trials by its
/// weight.
fn together(args: &TuneArgs, mut jobs: Vec<Job>, budget: Budget) -> Outcome {
    let weights: f64 = jobs.iter().map(|job| job.weight).sum();
    let shows = args.output.format == Format::Text;
    let place = journal(args)?.location().clone();
    let run = |job: &mut Job| -> Result<(), Failure> {
        let share = |trials: u64| (trials as f64 * job.weight / weights).round().max(1.0) as u64;
        let budget = Budget { trials: budget.trials.map(share), time: budget.time };
        let mut journal = Journal::open(Some(&place))
            .map_err(|error| super::failure(&error, args.output.format))?;
        let display = Display::of(job.program.name().to_owned(), shows);
        let tuner = job.tuner.clone().budget(budget);
        let tuned = super::watched(&tuner, &mut journal, args, display)?;
        job.trials = tuned.progress.trials;
        job.defects.add(&tuned.defects);
        job.last = Some(tuned);
        Ok(())
    };
    let mut results = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = jobs.iter_mut().map(|job| scope.spawn(|| run(job))).collect();
        results.extend(threads.into_iter().map(|thread| thread.join()));
    });
    for result in results {
        // A thread that panicked has said so.
        result.unwrap_or(Err(Failure::Reported))?;
    }
    finish(args, &jobs)
}

fn finish(args: &TuneArgs, jobs: &[Job]) -> Result<(), Failure> {
    let mut all = Defects::default();
    jobs.iter().for_each(|job| all.add(&job.defects));
    let done = jobs.iter().filter_map(|job| job.last.as_ref().map(|tuned| (job, tuned)));
    match args.output.format {
        Format::Json => {
            let all: Vec<_> = done.map(|(job, tuned)| summary::json(&job.program, tuned)).collect();
            report::json(&all)?;
        }
        Format::Text => {
            for (job, tuned) in done {
                println!("{} ({} trials)", summary::headline(&job.program, tuned), job.trials);
            }
            if let Some(line) = summary::defects(&all) {
                println!("{line}");
            }
        }
    }
    super::judge(args, all.count)
}

/// The first problem in a line.
fn first(diagnostics: &Diagnostics) -> String {
    diagnostics.list().first().map(|diagnostic| diagnostic.message.clone()).unwrap_or_default()
}
