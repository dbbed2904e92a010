//! `tensorwright cost-model measure`

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use tensorwright::{Diagnostics, Goal, Module, Program, Target};
use tensorwright_cost_model::{Plan, RandomPipeline, measure};
use tensorwright_measure::WorkerCommand;
use tensorwright_pipeline::{Machine, Sample, Samples};

use crate::args::{Format, OutputArgs, TargetArgs};
use crate::commands::tune::{failure, stop_on_signals};
use crate::failure::{Failure, InFormat, Outcome};
use crate::files;
use crate::sizes::SizeList;

/// Measure schedules of multi-stage programs as training samples
///
/// Random pipelines are made of building blocks of image processing; `--file` measures your
/// program. Schedules are verified before they are timed. Samples are appended to the file; the
/// same command resumes an interrupted run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright cost-model measure samples.jsonl --random 100
  tensorwright cost-model measure mine.jsonl --file examples/kernels/harris.tc --size H=512,W=512")]
pub(super) struct MeasureArgs {
    /// The file to append samples to
    #[arg(value_name = "SAMPLES.jsonl")]
    samples: PathBuf,

    /// How many random pipelines to measure
    #[arg(long, value_name = "N", default_value_t = 0)]
    random: u64,

    /// A program to measure
    #[arg(long, value_name = "FILE.tc")]
    file: Option<PathBuf>,

    /// The definition; optional if the file has only one
    #[arg(long, value_name = "NAME")]
    def: Option<String>,

    /// Its sizes
    #[arg(long = "size", value_name = "NAME=VALUE")]
    sizes: Vec<SizeList>,

    /// Schedules per program, at most
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    schedules: u16,

    /// The time limit per program, in seconds
    #[arg(long, value_name = "S", default_value_t = 20)]
    longest: u64,

    /// The first random pipeline; also seeds the schedules and the inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Measures samples.
pub(super) fn run(args: &MeasureArgs, worker: WorkerCommand) -> Outcome {
    let format = args.output.format;
    let goal = crate::commands::goal(&args.target).in_format(format)?;
    let Target::Cpu(cpu) = &goal.target else {
        let text = "cost models of pipelines support only CPUs\n  help: `--target native`";
        return Err(failure(&std::io::Error::other(text), format));
    };
    let machine = Machine::of(&goal.for_target(cpu.clone()));
    let own = own_program(args)?;
    if own.is_none() && args.random == 0 {
        let text = "there is nothing to measure\n  help: `--random 100`, or `--file` with a program of yours";
        return Err(failure(&std::io::Error::other(text), format));
    }
    let known = known(args, &goal, &machine)?;
    let done: HashSet<(&str, usize)> =
        known.list.iter().map(|sample| (sample.program.as_str(), sample.threads)).collect();
    let count = args.random.saturating_add(u64::from(own.is_some()));
    let seeds = args.seed..args.seed.saturating_add(args.random);
    // Random pipelines are made lazily: there may be any number of them.
    let programs = own.into_iter().map(Ok).chain(seeds.map(random_program));
    let stop = stop_on_signals();
    let wrong = |error: std::io::Error| {
        let text = format!("{} cannot be written: {error}", args.samples.display());
        failure(&std::io::Error::other(text), format)
    };
    let mut file = OpenOptions::new().append(true).open(&args.samples).map_err(wrong)?;
    let mut total = 0;
    for (number, program) in programs.enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (name, program) = program.in_format(format)?;
        if done.contains(&(name.as_str(), goal.threads())) {
            continue;
        }
        let plan = Plan {
            worker: worker.clone(),
            goal: goal.clone(),
            schedules: args.schedules.into(),
            longest: Duration::from_secs(args.longest),
            seed: args.seed.wrapping_add(number as u64),
        };
        // A program that cannot be measured here is skipped with a message.
        let found = measure(&name, &program, &plan, &stop).unwrap_or_else(|error| {
            eprintln!("{name}: {error}");
            Vec::new()
        });
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let lines: String = found.iter().map(Sample::to_line).collect();
        file.write_all(lines.as_bytes()).map_err(wrong)?;
        total += found.len();
        if format == Format::Text {
            eprintln!("{}/{count} {name}: {} schedules", number + 1, found.len());
        }
    }
    match format {
        Format::Text => println!("{total} samples added to {}", args.samples.display()),
        Format::Json => crate::report::json(&serde_json::json!({ "samples": total }))?,
    }
    Ok(())
}

/// The samples in the file so far; creates a missing file and drops an incomplete last line.
fn known(args: &MeasureArgs, goal: &Goal, machine: &Machine) -> Result<Samples, Failure> {
    let format = args.output.format;
    let empty = || {
        let name = tensorwright::runtime::Machine::detect().model;
        Samples::new(&name, &goal.target.to_string(), machine)
    };
    if !args.samples.exists() {
        let empty = empty();
        files::write_bytes(&args.samples, empty.header().as_bytes()).in_format(format)?;
        return Ok(empty);
    }
    let known = super::samples([args.samples.as_path()], format)?;
    if known.prices != empty().prices {
        let text = format!(
            "{} was measured for another kind of machine\n  help: name another file",
            args.samples.display()
        );
        return Err(failure(&std::io::Error::other(text), format));
    }
    files::end_with_a_line(&args.samples).in_format(format)?;
    Ok(known)
}

/// The program of the command line, under a distinct name.
fn own_program(args: &MeasureArgs) -> Result<Option<(String, Program)>, Failure> {
    let format = args.output.format;
    let Some(path) = &args.file else { return Ok(None) };
    let module = files::module(path).in_format(format)?;
    let sizes = crate::sizes::exact(&args.sizes).in_format(format)?;
    let named: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    let def = crate::commands::chosen_def(&module, args.def.as_deref()).in_format(format)?;
    let name = format!("{} {}", def.name(), named.join(","));
    Ok(Some((name, def.bind(sizes).in_format(format)?)))
}

/// A random pipeline.
fn random_program(seed: u64) -> Result<(String, Program), Diagnostics> {
    let name = format!("random {seed}");
    let module = Module::parse(&name, &RandomPipeline::new(seed).text)?;
    let none: [(&str, i64); 0] = [];
    let program = crate::commands::chosen_def(&module, None)?.bind(none)?;
    Ok((name, program))
}
