//! `tensorwright package`

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;
use tensorwright::{Code, Diagnostic, Diagnostics, Precision, Source};
use tensorwright_package::{BuildOptions, Package, Plan, Progress};
use tensorwright_records::{AnyStore, Location, Store, open_existing};

use crate::args::{Format, OutputArgs};
use crate::failure::{InFormat, Outcome};
use crate::{files, report};

/// How often progress is printed without a terminal.
const SELDOM: Duration = Duration::from_secs(10);

/// Compile the operators of a manifest into a library for C, Rust and Python
///
/// At run time, the library selects a kernel by the sizes of a call and the processor. It needs
/// neither Tensorwright nor LLVM. Recorded schedules are used where they exist.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright package kernels.toml -o build
  tensorwright package kernels.toml -o build --db records.sqlite3
The manifest and the library are described in docs/packaging.md.")]
pub(crate) struct PackageArgs {
    /// The manifest, as `tune --manifest` takes it
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,

    /// The directory to write to
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// The records to read, instead of the default ones
    #[arg(long, value_name = "FILE|URL", conflicts_with = "untuned")]
    db: Option<Location>,

    /// Ignore tuned schedules in the records
    #[arg(long)]
    untuned: bool,

    /// The precision of all operators; overrides the manifest
    #[arg(long, value_name = "NAME", value_parser = crate::args::precision())]
    precision: Option<Precision>,

    /// The C compiler for the dispatcher and for linking
    #[arg(long, value_name = "PROGRAM", default_value = "cc")]
    cc: PathBuf,

    #[command(flatten)]
    format: OutputArgs,
}

/// Builds and writes a package.
pub(crate) fn run(args: &PackageArgs) -> Outcome {
    let format = args.format.format;
    let (plan, package) = build(args).in_format(format)?;
    let paths: Vec<PathBuf> =
        package.files().iter().map(|(name, _)| args.output.join(name)).collect();
    if format == Format::Json {
        let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let value = serde_json::json!({ "name": package.name(), "kernels": plan.kernels(), "files": files });
        return Ok(report::json(&value)?);
    }
    let mut out = crate::terminal::out();
    for path in &paths {
        writeln!(out, "wrote {}", path.display())?;
    }
    let name = package.name();
    writeln!(
        out,
        "{} kernels; link with `-L{} -l{name} -lm`",
        plan.kernels(),
        args.output.display()
    )?;
    Ok(())
}

fn build(args: &PackageArgs) -> Result<(Plan, Package), Diagnostics> {
    let mut manifest = files::manifest(&args.manifest)?;
    if let Some(precision) = args.precision {
        manifest = manifest.with_precision(precision);
    }
    let folder = args.manifest.parent().unwrap_or(Path::new(""));
    let stem = args.manifest.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let plan = Plan::new(&manifest, stem, &mut |file| files::module(&folder.join(file)))?;
    let store = if args.untuned { None } else { records(args.db.as_ref())? };
    let display = Display::new(args.format.format == Format::Text);
    let progress = |progress: &Progress| display.show(progress);
    let mut options = BuildOptions::default();
    options.cc = &args.cc;
    options.records = store.as_deref().map(|store| store as &dyn Store);
    options.progress = &progress;
    options.notes = &|note| eprintln!("tuned: {note}");
    let package = plan.build(&options);
    display.finish();
    let package = package?;
    package.write(&args.output)?;
    Ok((plan, package))
}

/// The records, if there are any; explicitly named records must exist.
fn records(db: Option<&Location>) -> Result<Option<AnyStore>, Diagnostics> {
    let problem = |message: String, help: &str| {
        let diagnostic = Diagnostic::without_place(Code::InvalidFile, message).help(help);
        Diagnostics::new(Source::new("records", ""), vec![diagnostic])
    };
    let store = open_existing(db).map_err(|error| problem(error.to_string(), &error.help()))?;
    match (store, db) {
        (None, Some(place)) => {
            let message = format!("there are no records at {place}");
            Err(problem(message, "tune something, import records, or leave out --db"))
        }
        (store, _) => Ok(store),
    }
}

/// Progress of the build on standard error.
struct Display {
    shows: bool,
    is_terminal: bool,
    last: Mutex<Instant>,
}

impl Display {
    fn new(shows: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { shows, is_terminal, last: Mutex::new(Instant::now()) }
    }

    fn show(&self, progress: &Progress) {
        let Ok(mut last) = self.last.lock() else { return };
        if !self.shows || (!self.is_terminal && last.elapsed() < SELDOM) {
            return;
        }
        *last = Instant::now();
        let text = format!("{}/{} kernels | {}", progress.done, progress.total, progress.what);
        if self.is_terminal {
            eprint!("\r\x1b[K{text}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }

    /// Ends the progress line.
    fn finish(&self) {
        if self.shows && self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
