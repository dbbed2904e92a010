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

/// Trials of a run that is given neither trials nor time.
const TRIALS: u64 = 200;

/// Find a fast schedule: search, verify, time, remember
///
/// Every candidate is built and run in a child process, checked against the reference, and recorded
/// as it happens. Ctrl-C keeps all and prints the best; the same command goes on from there. `run` and
/// `compile` then use the best schedule by themselves.
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

    /// The definition; may be left out if the file has only one
    #[arg(long = "def", value_name = "NAME")]
    def: Option<String>,

    /// Sizes and integer scalars, such as `M=128,K=64`; may be repeated
    #[arg(long = "size", value_name = "NAME=NUMBER,...")]
    sizes: Vec<SizeList>,

    /// Tune every definition of the file that the sizes suffice for, with a common budget
    #[arg(long, conflicts_with_all = ["def", "manifest"])]
    all: bool,

    /// Tune the operators of a manifest with a common budget
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "def"])]
    manifest: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    /// How much is measured before a schedule is chosen [default: autotune]
    #[arg(long, value_name = "MODE", value_parser = modes())]
    mode: Option<Mode>,

    /// Choose a schedule by the model and print it; nothing is measured, and the device need not be here
    #[arg(long, conflicts_with_all = ["all", "manifest", "mode", "strategy", "trials", "time"])]
    model_only: bool,

    /// Weights of `tensorwright cost-model train`, for the cost model that chooses between pipelines
    #[arg(long, value_name = "WEIGHTS.json")]
    model: Option<PathBuf>,

    /// The search strategy [default: portfolio]
    #[arg(long, value_name = "NAME", value_parser = strategies(&[]))]
    strategy: Option<String>,

    /// End after so many candidates were built [default: 200 if no time is given]
    #[arg(long, value_name = "N")]
    trials: Option<u64>,

    /// End after this time, such as 60s or 10m, with the start and the finals; the latter take a second at least
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,

    /// Decides every random choice of the search, and the inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Search without what earlier runs found out
    #[arg(long)]
    fresh: bool,

    /// Exit with 1 if a candidate shows a defect of the compiler: a wrong result, a crash, or code that
    /// cannot be built
    #[arg(long)]
    deny_defects: bool,

    #[command(flatten)]
    fleet: FleetOptions,

    #[command(flatten)]
    space: SpaceOptions,

    /// The records, instead of the usual ones
    #[arg(long, value_name = "FILE|URL")]
    db: Option<Location>,

    #[command(flatten)]
    output: OutputArgs,
}

impl TuneArgs {
    /// The records that were named.
    pub(crate) fn db(&self) -> Option<&Location> {
        self.db.as_ref()
    }
}

/// That others try the candidates.
#[derive(Debug, Args)]
pub(crate) struct FleetOptions {
    /// Let the workers of a fleet try the candidates, by the server of --db; several operators are tuned at the same time
    #[arg(long, conflicts_with = "model_only")]
    fleet: bool,

    /// The class of machines that tries them [default: those like this one]
    #[arg(long, value_name = "CLASS", requires = "fleet")]
    class: Option<String>,

    /// Go on with the run of this name; its process, if it lives, may add nothing from then on. Without this the same command goes
    /// on with a run whose process is gone
    #[arg(long, value_name = "RUN", requires = "fleet", conflicts_with_all = ["all", "manifest", "fresh"])]
    resume: Option<String>,

    /// Before (0) or after (3) other runs of the class
    #[arg(long, value_name = "0-3", requires = "fleet", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: u8,

    /// The share of the class, beside other runs
    #[arg(long, value_name = "1-100", requires = "fleet", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    weight: u8,
}

impl FleetOptions {
    /// What the tuner is told.
    fn remote_workers(&self) -> Option<RemoteWorkers> {
        let Self { class, resume, priority, weight, .. } = self;
        let remote = RemoteWorkers::default().class(class.clone()).resume(resume.clone());
        self.fleet.then(|| remote.priority(*priority).weight(*weight))
    }
}

/// What a run has around it.
struct Around {
    worker: WorkerCommand,
    stop: Arc<AtomicBool>,
}

/// Tunes.
pub(crate) fn run(args: &TuneArgs, worker: WorkerCommand) -> Outcome {
    let format = args.output.format;
    let around = Around { worker, stop: stop_on_signals() };
    let Some(file) = &args.file else { return many::manifest(args, &around) };
    if args.all {
        return many::all(args, file, &around);
    }
    let module = files::module_with(file).in_format(format)?;
    let sizes = crate::sizes::exact(&args.sizes).in_format(format)?;
    let program = super::chosen_def(&module, args.def.as_deref())
        .and_then(|def| def.bind(sizes.clone()))
        .in_format(format)?;
    if args.model_only {
        return model_only::run(args, &program);
    }
    let tuner = tuner(args, &program, sizes, &around)?;
    let display = Display::new(format == Format::Text);
    let tuned = watched(&tuner, &mut journal(args)?, display).map_err(|e| failed(e, format))?;
    match format {
        Format::Text => summary::text(&program, &tuned)?,
        Format::Json => report::json(&summary::json(&program, tuner.sizes_by_name(), &tuned))?,
    }
    judge(args, tuned.defects.count)
}

/// Whether the command has failed because of candidates that show defects of the compiler. The summary
/// has said which.
fn judge(args: &TuneArgs, defects: u64) -> Outcome {
    if args.deny_defects && defects > 0 { Err(Failure::Reported) } else { Ok(()) }
}

/// The records of the command line. What cannot be written waits, but not for a place that the command line
/// names and that will never take it.
fn journal(args: &TuneArgs) -> Result<Journal, Failure> {
    let failed = |error: &Error| super::db::failed(error, args.output.format);
    let journal = Journal::open(args.db.as_ref()).map_err(|error| failed(&error))?;
    match journal.trouble().filter(|trouble| args.db.is_some() && trouble.is_lasting()) {
        Some(trouble) => Err(failed(trouble)),
        None => Ok(journal),
    }
}

/// One run, with its progress on standard error.
fn watched(tuner: &Tuner, journal: &mut Journal, mut display: Display) -> Result<Tuned, TuneError> {
    let tuned = tuner.run(journal, &mut |event| display.show(event));
    display.finish();
    tuned
}

/// That a run could not begin or go on.
fn failed(error: TuneError, format: Format) -> Failure {
    match error {
        TuneError::Program(diagnostics) => Failure::Diagnostics(diagnostics, format),
        other => failure(&other, format),
    }
}

/// The tuner of the command line for a program.
fn tuner(
    args: &TuneArgs,
    program: &Program,
    sizes: BTreeMap<String, i64>,
    around: &Around,
) -> Result<Tuner, Failure> {
    let format = args.output.format;
    let target = super::target(&args.target.target).in_format(format)?;
    let tuner =
        Tuner::new(program, around.worker.clone()).map_err(|error| failure(&error, format))?;
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
        .stop_flag(Arc::clone(&around.stop));
    if let Some(name) = &args.strategy {
        tuner = tuner.strategy(name);
    }
    if let Some(path) = &args.model {
        tuner = tuner.weights(files::weights(path).in_format(format)?);
    }
    Ok(tuner)
}

/// An argument as it may be recorded: `--db=postgres://ann:***@db/tuning`.
fn without_password(argument: &str) -> String {
    let Some(at) = argument.find("postgres") else { return argument.to_owned() };
    let Ok(place) = argument[at..].parse::<Location>();
    format!("{}{place}", &argument[..at])
}

/// A flag that the first Ctrl-C (or a polite request to end) sets; the second ends at once.
pub(crate) fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // Without a handler Ctrl-C ends at once, which loses nothing but the trial in flight.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    stop
}

/// A problem that has no place in a text.
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
