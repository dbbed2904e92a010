//! `tensorwright worker`: tries candidates of a fleet.
//!
//! With other arguments, it is the child process that builds and runs candidates.

#[cfg(feature = "fleet")]
mod candidate_runner;
#[cfg(feature = "fleet")]
mod heartbeat;
#[cfg(feature = "fleet")]
mod serve;

use std::time::Duration;

use clap::Args;
use tensorwright_measure::WorkerCommand;
#[cfg(not(feature = "fleet"))]
use tensorwright_records::FLEET_FEATURE;
use tensorwright_records::Location;
use tensorwright_tuner::parse_duration;

use crate::args::Format;
use crate::config::default_threads;
use crate::failure::{Failure, Outcome};

/// Try candidates of a fleet on this machine
///
/// Leases candidates from the fleet's server, builds them from their program text, checks them
/// against the reference, times them, and stores the outcomes. It makes outgoing connections only.
/// Ctrl-C completes the current candidates first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright worker --db postgres://rack3@db.example/tuning
  tensorwright worker --db postgres://rack3@db.example/tuning --threads 4 --name rack3:1
A fleet is described in docs/fleet.md.")]
pub(crate) struct WorkerArgs {
    /// The fleet's server [default: $TENSORWRIGHT_DB]
    #[arg(long, value_name = "URL")]
    db: Option<Location>,

    /// The machine class to work for [default: this machine, its threads and this compiler]
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,

    /// The worker's name, unique for its user [default: machine name and a number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Threads for parallel loops; one per core unless set
    #[arg(long, value_name = "N", default_value_t = default_threads(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,

    /// Candidates held at a time; more are leased when half of them are done
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    batch: u32,

    /// The lease period: leases expire after this time without a heartbeat
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    lease: Duration,

    /// Stop when no candidates are waiting
    #[arg(long)]
    once: bool,

    /// Arguments of a child process, from the tuner
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

/// Works for a fleet until it is told to stop.
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

/// The class of this machine: everything results depend on.
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

/// A failure without a source location.
fn problem(message: String, help: &str) -> Failure {
    Failure::without_place("worker", message, help, Format::Text)
}
