//! The fuzzer of everything that reads texts and files.
//!
//! Every input is a function of the target, the seed and its index alone, whatever the number of
//! jobs. The inputs run in a child process: an overflow of the stack ends a process, and the parent
//! lives on to tell which input did it, and goes on with the next.

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
