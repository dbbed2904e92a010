//! `tensorwright fleet`: set up and watch a fleet.

mod http;
mod metrics;
mod serve;
mod snapshot;
mod top;

use std::io::Write;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use tensorwright::printable;
use tensorwright_fleet::{Fleet, Role, Status};
use tensorwright_records::{Error, Location, Url};

use self::snapshot::by_name;
use super::db::table::table;
use super::worker::class_here;
use crate::args::{Format, OutputArgs};
use crate::config::default_threads;
use crate::failure::{Failure, Outcome};
use crate::report;

/// The time limit of `forget`.
const FORGETTING: Duration = Duration::from_secs(3600);

/// Set up and watch a fleet of machines that tune together
///
/// The fleet's queue is in the records database, on a PostgreSQL server. A single machine does not
/// need it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright fleet init --db postgres://owner@db.example/tuning
  tensorwright fleet admit ann --as tune --db postgres://owner@db.example/tuning
  tensorwright fleet admit rack3 --as work --class \"$(tensorwright fleet class)\" --db postgres://owner@db.example/tuning
  tensorwright fleet status --db postgres://ann@db.example/tuning
  tensorwright fleet serve --db postgres://board@db.example/tuning     # a live page, on this machine
A fleet is described in docs/fleet.md.")]
pub(crate) struct FleetArgs {
    /// The fleet's server [default: $TENSORWRIGHT_DB]
    #[arg(long, global = true, value_name = "URL")]
    db: Option<Location>,

    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Init(InitArgs),
    Class(ClassArgs),
    Admit(AdmitArgs),
    Status(StatusArgs),
    Top(top::TopArgs),
    Serve(serve::ServeArgs),
    Drain(DrainArgs),
    Quarantine(QuarantineArgs),
    Forget(ForgetArgs),
}

/// Create missing tables, functions and roles; needs the owner of the database
#[derive(Debug, Args)]
struct InitArgs {
    /// Revoke temporary tables and large objects from all users of the database, who could fill its
    /// disk with them; needs a superuser and a database with no other use
    #[arg(long)]
    harden: bool,
}

/// Print the class of this machine, without contacting a server
#[derive(Debug, Args)]
struct ClassArgs {
    /// Threads for parallel loops; one per core unless set
    #[arg(long, value_name = "N", default_value_t = default_threads(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

/// Give a database user a role: tune, work or read
#[derive(Debug, Args)]
struct AdmitArgs {
    /// The user
    user: String,

    /// The role
    #[arg(long = "as", value_name = "ROLE", value_enum)]
    role: As,

    /// A class the user may work for, created if missing; may be repeated
    #[arg(long, value_name = "CLASS")]
    class: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum As {
    /// Add candidates and read their outcomes
    Tune,
    /// Lease and complete candidates
    Work,
    /// Read only
    Read,
}

/// Show waiting, leased and completed candidates by class
#[derive(Debug, Args)]
struct StatusArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// Stop leasing candidates to a worker; it completes those it holds
#[derive(Debug, Args)]
struct DrainArgs {
    /// The worker's name
    worker: String,
}

/// Quarantine a worker: its leases go to others, and its results are discarded
#[derive(Debug, Args)]
struct QuarantineArgs {
    /// The worker's name
    worker: String,

    /// The reason
    #[arg(long, value_name = "TEXT", default_value = "by hand", conflicts_with = "lift")]
    reason: String,

    /// End the quarantine
    #[arg(long)]
    lift: bool,
}

/// Remove the queue entries of old finished runs; their trials stay in the records
#[derive(Debug, Args)]
struct ForgetArgs {
    /// Runs that started at least this many days ago
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(0..=36500))]
    days: u32,
}

/// Runs a subcommand.
pub(crate) fn run(args: &FleetArgs) -> Outcome {
    let format = match &args.command {
        FleetCommand::Status(args) => args.output.format,
        _ => Format::Text,
    };
    if let FleetCommand::Class(args) = &args.command {
        let class = class_here(args.threads.into()).map_err(|reason| {
            problem(reason, "classes are for machines that can be described", format)
        })?;
        return Ok(writeln!(crate::terminal::out(), "{class}")?);
    }
    let fail = |error: Error| problem(error.to_string(), &error.help(), format);
    let url = match Location::given(args.db.as_ref()).map_err(fail)? {
        Location::Server(url) => url,
        Location::File(_) => {
            let help =
                "name the server with --db postgres://USER@HOST/DATABASE, or TENSORWRIGHT_DB";
            return Err(problem("a fleet needs a server".to_owned(), help, format));
        }
    };
    let said = answer(&args.command, &url).map_err(fail)?;
    match said {
        Reply::Status(status) if format == Format::Json => {
            let rows: Vec<serde_json::Value> = status.iter().map(json).collect();
            Ok(report::json(&serde_json::json!({ "classes": rows }))?)
        }
        Reply::Status(status) => {
            Ok(write!(crate::terminal::out(), "{}", printable(&shown(&status)))?)
        }
        Reply::Nothing => Ok(()),
        Reply::Line(line) => Ok(writeln!(crate::terminal::out(), "{}", printable(&line))?),
        Reply::NoWorker(name) => {
            let help = "`tensorwright worker` prints its name when it starts";
            Err(problem(format!("there is no worker {name}"), help, format))
        }
    }
}

/// The output of a subcommand.
enum Reply {
    Nothing,
    Line(String),
    Status(Vec<Status>),
    NoWorker(String),
}

fn answer(command: &FleetCommand, url: &Url) -> Result<Reply, Error> {
    let of_worker = |count: u32, name: &str, done: &str| match count {
        0 => Reply::NoWorker(name.to_owned()),
        _ => Reply::Line(format!("{name} {done}")),
    };
    match command {
        FleetCommand::Init(args) => {
            let mut fleet = Fleet::install(url)?;
            if args.harden {
                fleet.harden()?;
            }
            Ok(Reply::Line("the fleet is ready".to_owned()))
        }
        FleetCommand::Class(_) => Ok(Reply::Line(String::new())),
        FleetCommand::Admit(args) => {
            let mut fleet = Fleet::connect(url)?;
            let role = match args.role {
                As::Tune => Role::Tune,
                As::Work => Role::Work,
                As::Read => Role::Read,
            };
            fleet.admit(&args.user, role)?;
            for class in &args.class {
                fleet.add_class(class)?;
                fleet.permit(&args.user, class)?;
            }
            Ok(Reply::Line(format!("{} is admitted", args.user)))
        }
        FleetCommand::Status(_) => Ok(Reply::Status(Fleet::connect(url)?.status()?)),
        FleetCommand::Top(args) => top::run(args, url).map(|()| Reply::Nothing),
        FleetCommand::Serve(args) => serve::run(args, url).map(|()| Reply::Nothing),
        FleetCommand::Drain(args) => {
            let count = Fleet::connect(url)?.drain(&args.worker)?;
            Ok(of_worker(count, &args.worker, "gets no more candidates"))
        }
        FleetCommand::Forget(args) => {
            let older = Duration::from_secs(u64::from(args.days) * 86_400);
            let count = Fleet::connect(url)?.with_limit(FORGETTING).forget(older)?;
            Ok(Reply::Line(format!("{count} candidates are forgotten")))
        }
        FleetCommand::Quarantine(args) => {
            let reason = Some(args.reason.as_str()).filter(|_| !args.lift);
            let count = Fleet::connect(url)?.quarantine(&args.worker, reason)?;
            Ok(of_worker(
                count,
                &args.worker,
                if args.lift { "is taken back" } else { "is set aside" },
            ))
        }
    }
}

fn shown(status: &[Status]) -> String {
    let head = ["class", "runs", "waiting", "held", "done", "workers", "set aside"];
    let row = |status: &Status| {
        let Status { class, ready, leased, done, workers, quarantined, runs, .. } = status;
        let counts = [runs, ready, leased, done, workers, quarantined].map(u64::to_string);
        std::iter::once(class.clone()).chain(counts).collect()
    };
    table(&head, &status.iter().map(row).collect::<Vec<Vec<String>>>())
}

fn json(status: &Status) -> serde_json::Value {
    let Status { class, ready, leased, done, workers, quarantined, runs, kinds } = status;
    serde_json::json!({
        "class": class, "runs": runs, "ready": ready, "leased": leased, "done": done, "workers": workers,
        "quarantined": quarantined, "outcomes": by_name(kinds),
    })
}

fn problem(message: String, help: &str, format: Format) -> Failure {
    Failure::without_place("fleet", message, help, format)
}
