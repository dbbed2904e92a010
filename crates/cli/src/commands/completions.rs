//! `tensorwright completions`

use std::io::Write;

use crate::args::CompletionsArgs;
use crate::failure::Outcome;

/// Prints a completion script for the command line.
pub(crate) fn run(args: &CompletionsArgs, mut command_line: clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line, "tensorwright", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
