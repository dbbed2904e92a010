//! Tuning several operators with a shared budget.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tensorwright::{Diagnostics, Program};
use tensorwright_package::Sizes;
use tensorwright_records::Journal;
use tensorwright_tuner::{Allocation, Budget, Defects, Phases, Status, TuneError, Tuned, Tuner};

use super::progress::Display;
use super::{RunContext, TRIALS, TuneArgs, failed, journal, summary, tuner, watched};
use crate::args::Format;
use crate::failure::{Failure, InFormat, Outcome};
use crate::{files, report};

/// An operator with its tuning state.
struct Job {
    program: Program,
    tuner: Tuner,
    weight: f64,
    trials: u64,
    last: Option<Tuned>,
    defects: Defects,
}

impl Job {
    fn new(program: Program, tuner: Tuner, weight: f64) -> Self {
        Self { program, tuner, weight, trials: 0, last: None, defects: Defects::default() }
    }

    /// Its name and sizes: `gemm M=32,N=32,K=32`.
    fn title(&self) -> String {
        let sizes = self.tuner.sizes_by_name().iter();
        let sizes: Vec<String> = sizes.map(|(name, size)| format!("{name}={size}")).collect();
        format!("{} {}", self.program.name(), sizes.join(",")).trim_end().to_owned()
    }

    /// Records the result of a turn. A turn without trials found nothing.
    fn note(&mut self, tuned: Tuned) {
        self.trials += tuned.progress.trials;
        self.defects.add(&tuned.defects);
        let knows_all = self.last.is_none() && tuned.status == Status::Exhausted;
        if tuned.progress.trials > 0 || knows_all {
            self.last = Some(tuned);
        }
    }
}

/// Why some operators were not tuned, and what would help.
struct Shortage {
    why: String,
    is_wanted: bool,
}

/// Tunes all definitions of a file that the sizes suffice for.
pub(super) fn all(args: &TuneArgs, file: &Path, context: &RunContext) -> Outcome {
    let format = args.output.format;
    let module = files::module(file).in_format(format)?;
    let given = crate::sizes::exact(&args.sizes).in_format(format)?;
    let mut jobs = Vec::new();
    for def in module.defs() {
        // Each definition takes only the sizes that it declares.
        let names = [def.sizes(), def.integer_scalars()].concat();
        let sizes: BTreeMap<String, i64> = given
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .map(|(name, size)| (name.clone(), *size))
            .collect();
        match def.bind(sizes.clone()) {
            Ok(program) => {
                let tuner = tuner(args, &program, sizes, context)?;
                jobs.push(Job::new(program, tuner, 1.0));
            }
            Err(diagnostics) => eprintln!("{} is left out: {}", def.name(), first(&diagnostics)),
        }
    }
    let budget = Budget::asked(args.trials, args.time, TRIALS.saturating_mul(jobs.len() as u64));
    run(args, jobs, budget, context)
}

/// Tunes the operators of a manifest.
pub(super) fn manifest(args: &TuneArgs, context: &RunContext) -> Outcome {
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
        // For a range of sizes, tunes the values that get kernels of their own.
        let programs = sizes.programs(&def).in_format(format)?;
        let weight = operator.weight / programs.len() as f64;
        for (sizes, program) in programs {
            let mut tuner = tuner(args, &program, sizes, context)?
                .threads(operator.threads)
                .precision(args.target.precision.unwrap_or(manifest.precision_of(operator)))
                .seed(args.seed.max(manifest.tune.seed));
            if let (None, Some(mode)) = (args.mode, manifest.tune.mode) {
                tuner = tuner.mode(mode);
            }
            if let (None, Some(name)) = (&args.strategy, &manifest.tune.strategy) {
                tuner = tuner.strategy(name);
            }
            jobs.push(Job::new(program, tuner, weight));
        }
    }
    let time = args.time.or(manifest.tune.time);
    let trials = args.trials.or(manifest.tune.trials);
    let budget = Budget::asked(trials, time, TRIALS.saturating_mul(jobs.len() as u64));
    run(args, jobs, budget, context)
}

/// Allocates slices of the budget to the operators that gain most.
fn run(args: &TuneArgs, mut jobs: Vec<Job>, budget: Budget, context: &RunContext) -> Outcome {
    if args.fleet.fleet {
        return together(args, jobs, budget);
    }
    let begun = Instant::now();
    let mut journal = journal(args)?;
    let weights: Vec<f64> = jobs.iter().map(|job| job.weight).collect();
    let mut allocation = Allocation::new(&weights);
    let (mut left, mut longest) = (budget, Duration::ZERO);
    while !context.stop.load(Ordering::Relaxed) {
        left.time = budget.time.map(|time| time.saturating_sub(begun.elapsed()));
        let Some((place, slice)) = allocation.next(left) else { break };
        let job = &mut jobs[place];
        let shows = args.output.format == Format::Text;
        if shows {
            eprintln!("{} ({} of {} operators)", job.title(), place + 1, weights.len());
        }
        let turn = job.tuner.clone().budget(slice);
        let tuned = match watched(&turn, &mut journal, Display::new(shows)) {
            Ok(tuned) => tuned,
            Err(TuneError::NoTime(time)) => {
                // The start alone takes longer than a slice.
                longest = longest.max(time * 2);
                allocation.observe(place, f64::INFINITY, 0, true);
                continue;
            }
            Err(error) => return Err(failed(error, args.output.format)),
        };
        job.tuner = job.tuner.clone().continued();
        let exhausted = tuned.status == Status::Exhausted;
        allocation.observe(place, tuned.winner.seconds, tuned.progress.trials, exhausted);
        left.trials = left.trials.map(|left| left.saturating_sub(tuned.progress.trials));
        longest = longest.max(least_turn(&tuned));
        job.note(tuned);
    }
    let shortage = if context.stop.load(Ordering::Relaxed) {
        Shortage { why: "interrupted before its turn".to_owned(), is_wanted: true }
    } else if budget.time.is_some() {
        let seconds = allocation.time_for_all(longest).as_secs_f64().ceil();
        let why = format!("there was no time for it; {seconds} s would reach all operators");
        Shortage { why, is_wanted: false }
    } else {
        let why = format!("there was no trial for it; {} would reach all operators", jobs.len());
        Shortage { why, is_wanted: false }
    };
    finish(args, &jobs, &shortage)
}

/// The time of a turn with a single trial.
fn least_turn(tuned: &Tuned) -> Duration {
    let Phases { start, search, finals, .. } = tuned.phases;
    start + search.div_f64(tuned.progress.trials.max(1) as f64) + finals
}

/// Tunes all operators in parallel: a fleet shares its machines between runs, and each operator
/// gets trials by its weight.
fn together(args: &TuneArgs, mut jobs: Vec<Job>, budget: Budget) -> Outcome {
    let weights: f64 = jobs.iter().map(|job| job.weight).sum();
    let shows = args.output.format == Format::Text;
    let place = journal(args)?.location().clone();
    let run = |job: &mut Job| -> Result<(), Failure> {
        let share = |trials: u64| (trials as f64 * job.weight / weights).round().max(1.0) as u64;
        let budget = Budget { trials: budget.trials.map(share), time: budget.time };
        let mut journal = Journal::open(Some(&place))
            .map_err(|error| super::failure(&error, args.output.format))?;
        let display = Display::of(job.title(), shows);
        let tuner = job.tuner.clone().budget(budget);
        match watched(&tuner, &mut journal, display) {
            Ok(tuned) => job.note(tuned),
            // The summary reports it.
            Err(TuneError::NoTime(_)) => {}
            Err(error) => return Err(failed(error, args.output.format)),
        }
        Ok(())
    };
    let mut results = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = jobs.iter_mut().map(|job| scope.spawn(|| run(job))).collect();
        results.extend(threads.into_iter().map(|thread| thread.join()));
    });
    for result in results {
        // The panic message has been printed.
        result.unwrap_or(Err(Failure::Reported))?;
    }
    let why = "no worker of the fleet tried a candidate in time".to_owned();
    finish(args, &jobs, &Shortage { why, is_wanted: false })
}

/// Prints the result of each operator. Fails if `--all` or a manifest left some untuned.
fn finish(args: &TuneArgs, jobs: &[Job], shortage: &Shortage) -> Result<(), Failure> {
    let mut all = Defects::default();
    jobs.iter().for_each(|job| all.add(&job.defects));
    match args.output.format {
        Format::Json => {
            report::json(&jobs.iter().map(|job| json(job, shortage)).collect::<Vec<_>>())?;
        }
        Format::Text => {
            for job in jobs {
                println!("{}", line(job, shortage));
            }
            if let Some(line) = summary::defects(&all) {
                println!("{line}");
            }
        }
    }
    super::judge(args, all.count)?;
    let is_complete = shortage.is_wanted || jobs.iter().all(|job| job.last.is_some());
    if is_complete { Ok(()) } else { Err(Failure::Reported) }
}

fn line(job: &Job, shortage: &Shortage) -> String {
    let title = job.title();
    match &job.last {
        Some(tuned) => {
            let trials = if job.trials == 1 { "trial" } else { "trials" };
            format!("{} ({} {trials})", summary::headline(&title, tuned), job.trials)
        }
        None => format!("{title}: not tuned: {}", shortage.why),
    }
}

fn json(job: &Job, shortage: &Shortage) -> serde_json::Value {
    let sizes = job.tuner.sizes_by_name();
    match &job.last {
        Some(tuned) => {
            let mut value = summary::json(&job.program, sizes, tuned);
            // Totals over all turns.
            value["trials"] = job.trials.into();
            value
        }
        None => serde_json::json!({
            "def": job.program.name(),
            "sizes": sizes,
            "hash": job.program.hash().to_string(),
            "status": "not-tuned",
            "reason": shortage.why,
        }),
    }
}

/// The first problem, in one line.
fn first(diagnostics: &Diagnostics) -> String {
    diagnostics.list().first().map(|diagnostic| diagnostic.message.clone()).unwrap_or_default()
}
