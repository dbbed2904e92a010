//! `tensorwright tune`

mod many;
mod model_only;
mod progress;
mod summary;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use tensorwright::{Code, Diagnostic, Diagnostics, Program, Source};
use tensorwright_measure::WorkerCommand;
use tensorwright_records::{Error, Journal, Location};
use tensorwright_tuner::{Budget, Mode, RemoteWorkers, TuneError, Tuned, Tuner, parse_duration};

use self::progress::Display;
use super::space::SpaceOptions;
use super::unavailable;
use crate::args::{Format, OutputArgs, TargetArgs, modes, strategies};
use crate::failure::{Failure, InFormat, Outcome};
use crate::sizes::SizeList;
use crate::{files, report};

/// The default number of trials without a time limit.
const TRIALS: u64 = 200;

/// Search for a fast schedule, verify and time candidates, record the results
///
/// Each candidate is built and run in a child process, checked against the reference, and recorded
/// at once. Ctrl-C keeps all results and prints the best; the same command resumes the search.
/// `run` and `compile` use the best schedule automatically.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright tune examples/kernels/gemm.tc --def gemm --size M=1024,N=1024,K=1024 --time 60s
  tensorwright tune gemm.tc --def gemm --size M=512,N=512,K=512 --trials 500 --strategy opevo
  tensorwright tune examples/kernels/harris.tc --size H=1536,W=2560 --mode top5   # in seconds
  tensorwright tune gemm.tc --def gemm --size M=1024,N=1024,K=1024 --target cuda:sm_80 --model-only > gemm.sched
  tensorwright tune --all examples/kernels/norm.tc --size N=1024,D=1024 --trials 100
  tensorwright tune --manifest operators.toml          # many operators, a common budget
  tensorwright tune gemm.tc --size M=512,N=512,K=512 --fleet --db postgres://ann@db.example/tuning   # by many machines")]
pub(crate) struct TuneArgs {
    /// The file
    #[arg(value_name = "FILE", required_unless_present = "manifest")]
    file: Option<PathBuf>,

    /// The definition; optional if the file has only one
    #[arg(long = "def", value_name = "NAME")]
    def: Option<String>,

    /// Sizes and integer scalars, such as `M=128,K=64`; may be repeated
    #[arg(long = "size", value_name = "NAME=NUMBER,...")]
    sizes: Vec<SizeList>,

    /// Tune all definitions of the file that the sizes suffice for, with a shared budget
    #[arg(long, conflicts_with_all = ["def", "manifest"])]
    all: bool,

    /// Tune the operators of a manifest with a shared budget
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "def"])]
    manifest: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    /// How much to measure before choosing a schedule [default: autotune]
    #[arg(long, value_name = "MODE", value_parser = modes())]
    mode: Option<Mode>,

    /// Print the schedule that the cost model chooses; measures nothing and needs no device
    #[arg(long, conflicts_with_all = ["all", "manifest", "mode", "strategy", "trials", "time"])]
    model_only: bool,

    /// Weights from `tensorwright cost-model train`, for the choice between pipelines
    #[arg(long, value_name = "WEIGHTS.json")]
    model: Option<PathBuf>,

    /// The search strategy [default: portfolio]
    #[arg(long, value_name = "NAME", value_parser = strategies(&[]))]
    strategy: Option<String>,

    /// Stop after building this many candidates [default: 200 without --time]
    #[arg(long, value_name = "N")]
    trials: Option<u64>,

    /// Stop after this time, such as 60s or 10m, including start and finals; the finals take at
    /// least a second
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,

    /// The seed of the search and of the inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Ignore the results of earlier runs
    #[arg(long)]
    fresh: bool,

    /// Exit with 1 if a candidate shows a compiler defect: a wrong result, a crash, or code that
    /// does not build
    #[arg(long)]
    deny_defects: bool,

    #[command(flatten)]
    fleet: FleetOptions,

    #[command(flatten)]
    space: SpaceOptions,

    /// The records, instead of the default ones
    #[arg(long, value_name = "FILE|URL")]
    db: Option<Location>,

    #[command(flatten)]
    output: OutputArgs,
}

impl TuneArgs {
    /// The given location of the records.
    pub(crate) fn db(&self) -> Option<&Location> {
        self.db.as_ref()
    }
}

/// Tuning by remote workers.
#[derive(Debug, Args)]
pub(crate) struct FleetOptions {
    /// Send candidates to the workers of a fleet, whose server is --db; several operators are tuned
    /// in parallel
    #[arg(long, conflicts_with = "model_only")]
    fleet: bool,

    /// The machine class of the workers [default: machines like this one]
    #[arg(long, value_name = "CLASS", requires = "fleet")]
    class: Option<String>,

    /// Resume the run with this name; its process, if still alive, can add no more results. Without
    /// this option, the same command resumes a run whose process has ended
    #[arg(long, value_name = "RUN", requires = "fleet", conflicts_with_all = ["all", "manifest", "fresh"])]
    resume: Option<String>,

    /// The priority within the class: 0 (first) to 3 (last)
    #[arg(long, value_name = "0-3", requires = "fleet", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: u8,

    /// The share of the class, relative to other runs
    #[arg(long, value_name = "1-100", requires = "fleet", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    weight: u8,
}

impl FleetOptions {
    /// The tuner's settings for remote workers.
    fn remote_workers(&self) -> Option<RemoteWorkers> {
        let Self { class, resume, priority, weight, .. } = self;
        let remote = RemoteWorkers::default().class(class.clone()).resume(resume.clone());
        self.fleet.then(|| remote.priority(*priority).weight(*weight))
    }
}

/// State shared by the runs of one command.
struct RunContext {
    worker: WorkerCommand,
    stop: Arc<AtomicBool>,
}

/// Tunes.
pub(crate) fn run(args: &TuneArgs, worker: WorkerCommand) -> Outcome {
    let format = args.output.format;
    let context = RunContext { worker, stop: stop_on_signals() };
    let Some(file) = &args.file else { return many::manifest(args, &context) };
    if args.all {
        return many::all(args, file, &context);
    }
    let module = files::module_with(file).in_format(format)?;
    let sizes = crate::sizes::exact(&args.sizes).in_format(format)?;
    let program = super::chosen_def(&module, args.def.as_deref())
        .and_then(|def| def.bind(sizes.clone()))
        .in_format(format)?;
    if args.model_only {
        return model_only::run(args, &program);
    }
    let tuner = tuner(args, &program, sizes, &context)?;
    let display = Display::new(format == Format::Text);
    let tuned = watched(&tuner, &mut journal(args)?, display).map_err(|e| failed(e, format))?;
    match format {
        Format::Text => summary::text(&program, &tuned)?,
        Format::Json => report::json(&summary::json(&program, tuner.sizes_by_name(), &tuned))?,
    }
    judge(args, tuned.defects.count)
}

/// Fails if `--deny-defects` is given and candidates show compiler defects, which the summary
/// has listed.
fn judge(args: &TuneArgs, defects: u64) -> Outcome {
    if args.deny_defects && defects > 0 { Err(Failure::Reported) } else { Ok(()) }
}

/// Opens the records of the command line. Failed writes are retried later, except at a location
/// from the command line that can never be written.
fn journal(args: &TuneArgs) -> Result<Journal, Failure> {
    let failed = |error: &Error| super::db::failed(error, args.output.format);
    let journal = Journal::open(args.db.as_ref()).map_err(|error| failed(&error))?;
    match journal.trouble().filter(|trouble| args.db.is_some() && trouble.is_lasting()) {
        Some(trouble) => Err(failed(trouble)),
        None => Ok(journal),
    }
}

/// One run, with progress on standard error.
fn watched(tuner: &Tuner, journal: &mut Journal, mut display: Display) -> Result<Tuned, TuneError> {
    let tuned = tuner.run(journal, &mut |event| display.show(event));
    display.finish();
    tuned
}

/// Converts a tuning error into a command failure.
fn failed(error: TuneError, format: Format) -> Failure {
    match error {
        TuneError::Program(diagnostics) => Failure::Diagnostics(diagnostics, format),
        other => failure(&other, format),
    }
}

/// The tuner for a program with the options of the command line.
fn tuner(
    args: &TuneArgs,
    program: &Program,
    sizes: BTreeMap<String, i64>,
    context: &RunContext,
) -> Result<Tuner, Failure> {
    let format = args.output.format;
    let target = super::target(&args.target.target).in_format(format)?;
    let tuner =
        Tuner::new(program, context.worker.clone()).map_err(|error| failure(&error, format))?;
    let command: Vec<String> =
        std::env::args().map(|argument| without_password(&argument)).collect();
    let mut tuner = tuner
        .sizes(sizes)
        .target(target)
        .threads(args.target.threads.into())
        .precision(args.target.precision())
        .budget(Budget::asked(args.trials, args.time, TRIALS))
        .seed(args.seed)
        .fresh(args.fresh)
        .fleet(args.fleet.remote_workers())
        .mode(args.mode.unwrap_or_default())
        .options(args.space.options())
        .command(command.join(" "))
        .stop_flag(Arc::clone(&context.stop));
    if let Some(name) = &args.strategy {
        tuner = tuner.strategy(name);
    }
    if let Some(path) = &args.model {
        tuner = tuner.weights(files::weights(path).in_format(format)?);
    }
    Ok(tuner)
}

/// An argument with its password masked: `--db=postgres://ann:***@db/tuning`.
fn without_password(argument: &str) -> String {
    let Some(at) = argument.find("postgres") else { return argument.to_owned() };
    let Ok(place) = argument[at..].parse::<Location>();
    format!("{}{place}", &argument[..at])
}

/// A stop flag, set by the first Ctrl-C or SIGTERM; the second ends the process at once.
pub(crate) fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // Without a handler, Ctrl-C ends at once and loses only the current trial.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    stop
}

/// A failure without a source location.
pub(crate) fn failure(error: &(dyn std::error::Error + 'static), format: Format) -> Failure {
    if let Some(TuneError::Target(error)) = error.downcast_ref::<TuneError>() {
        return Failure::Diagnostics(unavailable(error), format);
    }
    let text = error.to_string();
    let (message, help) = match text.split_once("\n  help: ") {
        Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
        None => (text, None),
    };
    let mut diagnostic = Diagnostic::without_place(Code::TuningFailed, message);
    if let Some(help) = help {
        diagnostic = diagnostic.help(help);
    }
    Failure::Diagnostics(Diagnostics::new(Source::new("tune", ""), vec![diagnostic]), format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_recorded() {
        let shown =
            ["--db", "postgres://a:***@h/d", "--db=postgresql://a:***@h/d?x=1", "my-postgres-file"];
        let given = [
            "--db",
            "postgres://a:secret@h/d",
            "--db=postgresql://a:secret@h/d?x=1",
            "my-postgres-file",
        ];
        assert_eq!(given.map(without_password), shown);
    }
}
