//! The command `tensorwright`, as a function: the executable calls it, and the Python package.
//!
//! Each subcommand is one file in `commands`; this file only dispatches. Results go to standard
//! output, problems to standard error; the exit code is 0 for success, 1 for errors in what the
//! user gave, 2 for a command line that cannot be understood.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the one place that prints")]

mod args;
mod command_line;
mod commands;
mod cuda;
mod failure;
mod files;
mod measure;
mod report;
mod sizes;
mod tuned;
mod version;

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

pub use commands::report::report_page;

use command_line::{Cli, Command};
use failure::Failure;
use tensorwright_measure::WorkerCommand;

/// Runs the command with its arguments, of which the first is the program's name, and returns the exit
/// code. `worker` starts a child process of the tuner.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>, worker: WorkerCommand) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, complaints to standard error. If that is closed, there is
            // nobody to tell.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let result = match &cli.command {
        Command::Check(args) => commands::check::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Grad(args) => commands::grad::run(args),
        Command::Lsp(args) => commands::lsp::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Compile(args) => commands::compile::run(args),
        Command::Package(args) => commands::package::run(args),
        Command::Schedule(args) => commands::schedule::run(args),
        Command::Space(args) => commands::space::run(args),
        Command::Tune(args) => commands::tune::run(args, worker),
        Command::Worker(args) if args.is_child() => return commands::worker::child(args),
        Command::Worker(args) => commands::worker::run(args, worker),
        #[cfg(feature = "postgres")]
        Command::Fleet(args) => commands::fleet::run(args),
        Command::Machine(args) => commands::machine::run(args),
        Command::Db(args) => commands::db::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Landscape(args) => commands::landscape::run(args, worker),
        Command::Model(args) => commands::model::run(args, worker),
        Command::Compare(args) => commands::compare::run(args),
        Command::List(args) => commands::list::run(args),
        Command::Completions(args) => commands::completions::run(args, Cli::command()),
    };
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
