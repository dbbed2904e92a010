//! A child process of the measurement, as an executable of its own: for tests, and for programs that
//! use the library without the command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tensorwright_measure::serve(std::env::args().skip(1)).into()
}
