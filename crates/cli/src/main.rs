//! The executable `tensorwright`.
#![allow(clippy::print_stderr, reason = "says why it cannot begin")]

use std::process::ExitCode;

use tensorwright_measure::WorkerCommand;

fn main() -> ExitCode {
    match std::env::current_exe() {
        // This program is its own worker.
        Ok(program) => {
            let worker = WorkerCommand::new(program).arg("worker");
            tensorwright_cli::main(std::env::args_os(), worker).into()
        }
        Err(error) => {
            eprintln!("cannot tell where this program is: {error}");
            ExitCode::FAILURE
        }
    }
}
