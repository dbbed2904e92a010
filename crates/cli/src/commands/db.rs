//! `tensorwright db`: show, export, import and clean records.

mod best;
mod list;
mod maintain;
mod show;
pub(crate) mod table;
mod transfer;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tensorwright::printable;
use tensorwright_records::{AnyStore, Error, Location, Store, open_existing};

use crate::args::{Format, OutputArgs, ProgramArgs, TargetArgs};
use crate::failure::{Failure, Outcome};

/// Show, export, import and clean the records of tuning
///
/// Records hold every outcome of every run, in one file that several processes may use at once, or
/// on a PostgreSQL server for several machines.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright db ls
  tensorwright db best gemm.tc --def gemm --size M=512,N=512,K=512
  tensorwright db why-miss gemm.tc --def gemm --size M=512,N=512,K=512 --threads 2
  tensorwright db export -o records.jsonl       # and on another machine:
  tensorwright db import records.jsonl
  tensorwright db ls --db postgres://ann@db.example/tuning
The records and their file are described in docs/records.md.")]
pub(crate) struct DbArgs {
    /// The records [default: $TENSORWRIGHT_DB, or tensorwright/records.sqlite3 in the user's data
    /// directory]
    #[arg(long, global = true, value_name = "FILE|URL")]
    pub(crate) db: Option<Location>,

    #[command(subcommand)]
    pub(crate) command: DbCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    Ls(LsArgs),
    Best(BestArgs),
    Show(ShowArgs),
    WhyMiss(LookupArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Gc(GcArgs),
}

/// List tuned programs, each with its best result
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// List runs, newest first
    #[arg(long)]
    runs: bool,

    /// Only definitions with this name
    #[arg(long, value_name = "NAME")]
    def: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Print the best schedule of a definition on this machine
///
/// Exits with 1 if there is none, and reports which part of the key differs from the stored ones.
#[derive(Debug, Args)]
pub(crate) struct BestArgs {
    #[command(flatten)]
    lookup: LookupArgs,

    /// Print only the schedule, as `run --schedule` takes it
    #[arg(long, conflicts_with = "format")]
    schedule: bool,
}

/// Explain a failed lookup: which part of the key differs from the stored ones
#[derive(Debug, Args)]
pub(crate) struct LookupArgs {
    #[command(flatten)]
    program: ProgramArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Show a run or one of its trials
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: a prefix of its name, as `ls --runs` prints it
    #[arg(value_name = "RUN")]
    run: String,

    /// The number of a trial to show in full
    #[arg(long, value_name = "N")]
    trial: Option<u64>,

    /// How many of the fastest trials to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// Export records to a file, to move or analyse them
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The format: JSON lines, which `import` reads, or a table with one line per trial
    #[arg(long = "as", value_enum, default_value_t = Shape::Lines)]
    shape: Shape,

    /// Only definitions with this name
    #[arg(long, value_name = "NAME")]
    def: Option<String>,

    /// Only runs whose names have this prefix
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// The format of exported records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// JSON lines: complete and exact
    Lines,
    /// Comma-separated values: one line per trial
    Csv,
}

/// Import records that `export` wrote
///
/// Existing records stay unchanged. Unusable lines are reported with their numbers and skipped; the
/// exit code is then 1.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Keep only the fastest trials of each key, and free the space
///
/// Declared winners, runs and outcome counts stay.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// How many of the fastest trials to keep per key
    #[arg(long, value_name = "N", default_value_t = 50)]
    keep: usize,

    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs a subcommand.
pub(crate) fn run(args: &DbArgs) -> Outcome {
    let db = args.db.as_ref();
    match &args.command {
        DbCommand::Ls(args) => list::run(db, args),
        DbCommand::Best(args) => best::run(db, args),
        DbCommand::Show(args) => show::run(db, args),
        DbCommand::WhyMiss(args) => best::why_miss(db, args),
        DbCommand::Export(args) => transfer::export(db, args),
        DbCommand::Import(args) => transfer::import(db, args),
        DbCommand::Gc(args) => maintain::collect(db, args),
    }
}

/// Opens existing records. Reading creates no files: missing records are an error.
fn existing(db: Option<&Location>, format: Format) -> Result<AnyStore, Failure> {
    let found = open_existing(db).map_err(|error| failed(&error, format))?;
    let none = || {
        let place = Location::given(db).map(|place| place.to_string()).unwrap_or_default();
        let message = format!("there are no records at {place}");
        problem(message, "tune something, import records, or name another file with --db", format)
    };
    found.ok_or_else(none)
}

/// Warns on standard error about damaged records that were skipped.
fn warn_of_damage(store: &dyn Store) {
    for damage in store.damage() {
        eprintln!("warning: {}", printable(&damage.to_string()));
    }
}

/// Converts a problem of records into a command failure.
pub(super) fn failed(error: &Error, format: Format) -> Failure {
    problem(error.to_string(), &error.help(), format)
}

pub(super) fn problem(message: String, help: &str, format: Format) -> Failure {
    Failure::without_place("records", message, help, format)
}
