//! The `tensorwright` command as a function, for the executable and the Python package.
//!
//! Each subcommand is one file in `commands`; this file only dispatches. Results go to standard
//! output, problems to standard error. Exit codes: 0 for success, 1 for invalid input, 2 for an
//! invalid command line.
#[macro_use]
mod terminal;

mod args;
mod command_line;
mod commands;
mod config;
mod cuda;
mod failure;
mod files;
mod logging;
mod measure;
mod report;
mod sizes;
mod tuned;
mod version;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, FromArgMatches, Parser};

pub use commands::report::report_page;
pub use config::{Configured, configure, default_threads};
pub use logging::{LoggingGuard, init_logging_from_environment};

use command_line::{Cli, Command};
use config::Settings;
use failure::{Failure, Outcome};
use tensorwright_measure::WorkerCommand;

/// The definition of the command line, with all subcommands and help texts.
#[must_use]
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs the command and returns the exit code. The first argument is the program's name; `worker`
/// starts a child process of the tuner.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>, worker: WorkerCommand) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return misunderstood(error),
    };
    if let Command::Worker(args) = &cli.command
        && args.is_child()
    {
        // A child uses its parent's settings and trace.
        return commands::worker::child(args);
    }
    // The guard completes the trace file when it is dropped.
    let _guard = match logging::init(&cli.logging) {
        Ok(observation) => observation,
        Err(problem) => {
            report::problems(&problem, args::Format::Text);
            return 2;
        }
    };
    match &cli.command {
        // These must work with an invalid configuration.
        Command::Config(args) => return exit_code(commands::config::run(args)),
        Command::Doctor(args) => return exit_code(commands::doctor::run(args)),
        // Editors and shells need no configuration.
        Command::Lsp(args) => return exit_code(commands::lsp::run(args)),
        Command::Completions(args) => {
            return exit_code(commands::completions::run(args, Cli::command()));
        }
        Command::Man(args) => return exit_code(commands::man::run(args, Cli::command())),
        _ => {}
    }
    let settings = match config::load() {
        Ok(settings) => settings,
        Err(problem) => {
            report::problems(&problem, args::Format::Text);
            return 1;
        }
    };
    config::apply(&settings);
    // Typed options take precedence over a file: parse again with the file's settings as defaults.
    let command_line = config::with_defaults(Cli::command(), &settings);
    let matches = command_line.try_get_matches_from(&arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => exit_code(run(&cli.command, &settings, worker)),
        Err(error) => misunderstood(error),
    }
}

/// Prints a clap error: help on standard output, complaints on standard error.
fn misunderstood(error: clap::Error) -> u8 {
    // A closed stream is not an error here.
    let _ = match (error.use_stderr(), report::colour()) {
        (false, _) => error.print(),
        (true, true) => write!(terminal::coloured_err(), "{}", error.render().ansi()),
        (true, false) => write!(terminal::err(), "{}", error.render()),
    };
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// Runs a subcommand.
fn run(command: &Command, settings: &Settings, worker: WorkerCommand) -> Outcome {
    match command {
        Command::Check(args) => commands::check::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Grad(args) => commands::grad::run(args),
        Command::Lsp(args) => commands::lsp::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Compile(args) => commands::compile::run(args),
        Command::Package(args) => commands::package::run(args),
        Command::Schedule(args) => commands::schedule::run(args),
        Command::Space(args) => commands::space::run(args),
        Command::Tune(args) => {
            let tuned = commands::tune::run(args, worker);
            commands::cache::keep_within(args.db(), settings.cache_limit.value);
            tuned
        }
        Command::Worker(args) => commands::worker::run(args, worker),
        Command::Fleet(args) => commands::fleet::run(args),
        Command::Machine(args) => commands::machine::run(args),
        Command::Db(args) => commands::db::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Landscape(args) => commands::landscape::run(args, worker),
        Command::CostModel(args) => commands::cost_model::run(args, worker),
        Command::Compare(args) => commands::compare::run(args),
        Command::List(args) => commands::list::run(args),
        Command::Cache(args) => commands::cache::run(args, settings),
        Command::Config(args) => commands::config::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Completions(args) => commands::completions::run(args, Cli::command()),
        Command::Man(args) => commands::man::run(args, Cli::command()),
    }
}

/// Reports a failure and returns the exit code.
fn exit_code(result: Outcome) -> u8 {
    match result {
        Ok(()) => 0,
        Err(Failure::Reported) => 1,
        Err(Failure::Diagnostics(diagnostics, format)) => {
            report::problems(&diagnostics, format);
            1
        }
        // The reader has closed the pipe (`tensorwright ... | head`).
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(Failure::Output(error)) => {
            eprintln!("cannot write the output: {error}");
            1
        }
    }
}

/// The child process of the tuner: serves until the tuner closes it, and returns the exit code.
#[must_use]
pub fn worker(arguments: impl IntoIterator<Item = String>) -> u8 {
    tensorwright_measure::serve(arguments)
}
