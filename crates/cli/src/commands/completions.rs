//! `tensorwright completions`

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Outcome;

/// Prints a completion script.
pub(crate) fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tensorwright", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
