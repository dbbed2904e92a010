//! The command `tensorwright`, as a function: the executable calls it, and the Python package.
//!
//! Each subcommand is one file in `commands`; this file only dispatches. Results go to standard
//! output, problems to standard error; the exit code is 0 for success, 1 for errors in what the
//! user gave, 2 for a command line that cannot be understood.
#[macro_use]
mod terminal;

mod args;
mod command_line;
mod commands;
mod config;
mod cuda;
mod failure;
mod files;
mod measure;
mod logging;
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

/// The command line: every subcommand with its arguments and its help.
#[must_use]
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs the command with its arguments, of which the first is the program's name, and returns the exit
/// code. `worker` starts a child process of the tuner.
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
        // What it does is told by its parent, whose settings and trace are not its own.
        return commands::worker::child(args);
    }
    // It writes the end of a trace when it goes.
    let _guard = match logging::init(&cli.logging) {
        Ok(observation) => observation,
        Err(problem) => {
            report::problems(&problem, args::Format::Text);
            return 2;
        }
    };
    match &cli.command {
        // These are of use where a configuration is wrong.
        Command::Config(args) => return exit_code(commands::config::run(args)),
        Command::Doctor(args) => return exit_code(commands::doctor::run(args)),
        // Editors and shells have nothing to do with one.
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
    // What was typed counts before what a file says, so it is read once more, with the file's words as defaults.
    let command_line = config::with_defaults(Cli::command(), &settings);
    let matches = command_line.try_get_matches_from(&arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => exit_code(run(&cli.command, &settings, worker)),
        Err(error) => misunderstood(error),
    }
}

/// Says what a command line ought to be: help on standard output, complaints on standard error.
fn misunderstood(error: clap::Error) -> u8 {
    // If nobody listens, there is nobody to tell.
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

/// Says what went wrong, and what the process ends with.
fn exit_code(result: Outcome) -> u8 {
    match result {
        Ok(()) => 0,
        Err(Failure::Reported) => 1,
        Err(Failure::Diagnostics(diagnostics, format)) => {
            report::problems(&diagnostics, format);
            1
        }
        // The reader of our output has gone away (`tensorwright ... | head`): nothing to say.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(Failure::Output(error)) => {
            eprintln!("cannot write the output: {error}");
            1
        }
    }
}

/// The child process of the tuner: serves until the tuner goes away, and returns the exit code.
#[must_use]
pub fn worker(arguments: impl IntoIterator<Item = String>) -> u8 {
    tensorwright_measure::serve(arguments)
}
