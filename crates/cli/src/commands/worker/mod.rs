//! `tensorwright worker`: tries candidates of a fleet. With other arguments it is the child process in which candidates are
//! built and run.

#[cfg(feature = "fleet")]
mod heartbeat;
#[cfg(feature = "fleet")]
mod serve;
#[cfg(feature = "fleet")]
mod candidate_runner;

use std::time::Duration;

use clap::Args;
use tensorwright::{Code, Diagnostic, Diagnostics, Source};
use tensorwright_measure::WorkerCommand;
#[cfg(not(feature = "fleet"))]
use tensorwright_records::FLEET_FEATURE;
use tensorwright_records::Location;
use tensorwright_tuner::parse_duration;

use crate::args::Format;
use crate::config::default_threads;
use crate::failure::{Failure, Outcome};

/// Try candidates that others tune, on this machine
///
/// Leases candidates from the server of a fleet, builds them from their program's text, checks them against the
/// reference, times them, and stores what became of them. It only dials out. Ctrl-C completes what is being tried.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright worker --db postgres://rack3@db.example/tuning
  tensorwright worker --db postgres://rack3@db.example/tuning --threads 4 --name rack3:1
A fleet is described in docs/fleet.md.")]
pub(crate) struct WorkerArgs {
    /// The server of the fleet [default: $TENSORWRIGHT_DB]
    #[arg(long, value_name = "URL")]
    db: Option<Location>,

    /// The class of machines to work for [default: this machine, its threads and this compiler]
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,

    /// The name of this worker, unlike any other of its user [default: the machine's and a number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The threads that parallel loops use; one for each core if nothing says it
    #[arg(long, value_name = "N", default_value_t = default_threads(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,

    /// Candidates that are held at a time; more are leased when half of them are done
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    batch: u32,

    /// How long candidates are held without a sign of life
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    lease: Duration,

    /// End when nothing waits
    #[arg(long)]
    once: bool,

    /// What the tuner says to a child process
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    args: Vec<String>,
}

impl WorkerArgs {
    /// Whether this is a child process of a tuner.
    pub(crate) fn is_child(&self) -> bool {
        !self.args.is_empty()
    }
}

/// Serves the tuner until it goes away.
pub(crate) fn child(args: &WorkerArgs) -> u8 {
    crate::worker(args.args.iter().cloned())
}

/// Works for a fleet until it is told to end.
pub(crate) fn run(args: &WorkerArgs, worker: WorkerCommand) -> Outcome {
    match Location::given(args.db.as_ref()) {
        Ok(Location::Server(url)) => served(args, &url, worker),
        Ok(Location::File(_)) => {
            let help =
                "name the server with --db postgres://USER@HOST/DATABASE, or TENSORWRIGHT_DB";
            Err(problem("a worker needs the server of a fleet".to_owned(), help))
        }
        Err(error) => Err(problem(error.to_string(), &error.help())),
    }
}

/// The class of this machine: what results depend on.
#[cfg(feature = "fleet")]
pub(crate) fn class_here(threads: usize) -> Result<String, String> {
    let target = tensorwright::Target::native().map_err(|error| error.to_string())?;
    Ok(tensorwright_tuner::class_of(&target, threads))
}

#[cfg(feature = "fleet")]
fn served(args: &WorkerArgs, url: &tensorwright_records::Url, worker: WorkerCommand) -> Outcome {
    serve::run(args, url, worker).map_err(|trouble| problem(trouble.message, &trouble.help))
}

#[cfg(not(feature = "fleet"))]
fn served(_: &WorkerArgs, _: &tensorwright_records::Url, _: WorkerCommand) -> Outcome {
    Err(problem("this build has no client for servers".to_owned(), FLEET_FEATURE))
}

/// A problem that has no place in a text.
fn problem(message: String, help: &str) -> Failure {
    let diagnostic = Diagnostic::without_place(Code::InvalidFile, message).help(help);
    let diagnostics = Diagnostics::new(Source::new("worker", ""), vec![diagnostic]);
    Failure::Diagnostics(diagnostics, Format::Text)
}
