//! The command `tensorwright`.
//!
//! Each subcommand is one file in `commands`; this file only dispatches. Results go to standard
//! output, problems to standard error; the exit code is 0 for success, 1 for errors in what the
//! user gave, 2 for a command line that cannot be understood.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the one place that prints")]

mod args;
mod commands;
mod failure;
mod files;
mod measure;
mod report;
mod sizes;
mod tuned;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Check(args) => commands::check::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Compile(args) => commands::compile::run(args),
        Command::Package(args) => commands::package::run(args),
        Command::Schedule(args) => commands::schedule::run(args),
        Command::Space(args) => commands::space::run(args),
        Command::Tune(args) => commands::tune::run(args),
        Command::Worker(args) => return commands::worker::run(args),
        Command::Machine(args) => commands::machine::run(args),
        Command::Db(args) => commands::db::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Landscape(args) => commands::landscape::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::List(args) => commands::list::run(args),
        Command::Completions(args) => commands::completions::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Reported) => ExitCode::FAILURE,
        Err(Failure::Diagnostics(diagnostics, format)) => {
            report::problems(&diagnostics, format);
            ExitCode::FAILURE
        }
        // The reader of our output has gone away (`tensorwright ... | head`): nothing to say.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Output(error)) => {
            eprintln!("cannot write the output: {error}");
            ExitCode::FAILURE
        }
    }
}
