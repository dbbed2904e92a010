//! The runner of Tensorwright's kernels for `bench/run`.
//!
//! A long-lived process that builds a workload and takes samples on request, so that the driver can
//! interleave it with its peers. Requests and replies are JSON lines on standard input and output
//! (`protocol.rs`). It uses the public library and the records of `tensorwright tune`.
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

/// Serve kernel timings to bench/run, as JSON lines
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// The target: this processor, or a device such as `opencl:0`
    #[arg(long, value_name = "NAME", default_value = "native")]
    target: String,

    /// Threads for parallel loops
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,

    /// The records of tuning, instead of the default ones
    #[arg(long, value_name = "FILE|URL")]
    db: Option<Location>,

    /// Ignore the records and use the default schedule
    #[arg(long)]
    untuned: bool,

    /// exact: may only reorder sums; fast: also algebraic rewrites that round differently
    /// (Winograd, ...)
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
