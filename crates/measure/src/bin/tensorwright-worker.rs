//! The measuring child process as a separate executable.
//!
//! Tests use it, and programs that use the library without the command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tensorwright_measure::serve(std::env::args().skip(1)).into()
}
