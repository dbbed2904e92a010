//! The runner of the project's own kernels for `bench/run`: a long-lived process that builds a workload,
//! then takes samples of it whenever it is asked to, so that the driver can interleave it with its peers.
//!
//! Requests and replies are lines of JSON on standard input and output; `protocol.rs` has them. It uses
//! what every user has: the library, and the records that `tensorwright tune` wrote.
#![allow(clippy::print_stderr, reason = "a command says what went wrong")]

mod overhead;
mod problem;
mod protocol;
mod roof;
mod sample;
mod serve;

use std::process::ExitCode;

use clap::Parser;
use tensorwright::Precision;
use tensorwright_records::Location;

/// Serve samples of kernels to bench/run, by lines of JSON
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// What kernels are for: this processor, or a device such as `opencl:0`
    #[arg(long, value_name = "NAME", default_value = "native")]
    target: String,

    /// The threads that parallel loops use
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,

    /// The records of tuning, instead of the usual ones
    #[arg(long, value_name = "FILE|URL")]
    db: Option<Location>,

    /// Use the default schedule, whatever the records hold
    #[arg(long)]
    untuned: bool,

    /// `exact`, or `fast` to allow algorithms that compute with other numbers, such as Winograd's
    #[arg(long, value_name = "NAME", default_value_t)]
    precision: Precision,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
    match serve::serve(input, output, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tensorwright-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
