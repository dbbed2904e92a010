//! Fuzzer for all readers of texts and files.
//!
//! Every input is a function of the target, the seed and its index, for any number of jobs. Inputs
//! run in a child process: a stack overflow kills the process, and the parent reports the input and
//! continues with the next.

mod corpus;
mod minimise;
mod options;
mod parent;
mod process;
mod report;
mod targets;
mod worker;

pub(crate) use options::FuzzOptions;
#[cfg(test)]
pub(crate) use targets::TARGETS;

use std::process::ExitCode;

/// Runs the fuzzer as the options say.
pub(crate) fn run(options: FuzzOptions) -> Result<ExitCode, String> {
    match (options.is_child, &options.replay) {
        (true, _) => Ok(worker::run_all(&options)),
        (false, Some(_)) => parent::replay(&options),
        (false, None) => parent::run(&options),
    }
}
