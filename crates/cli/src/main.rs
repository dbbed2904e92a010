//! The `tensorwright` executable.
#![allow(clippy::print_stderr, reason = "reports why the program cannot start")]

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
            eprintln!("cannot find the path of this program: {error}");
            ExitCode::FAILURE
        }
    }
}
