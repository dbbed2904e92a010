//! `tensorwright fleet` in builds without the feature `fleet`.

use clap::Args;
use tensorwright::{Code, Diagnostic, Diagnostics, Source};
use tensorwright_records::FLEET_FEATURE;

use crate::args::Format;
use crate::failure::{Failure, Outcome};

/// Tune on many machines (not in this build)
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct FleetArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

/// Explains how to get a build with this command.
pub(crate) fn run(_: &FleetArgs) -> Outcome {
    let message = "this build has no client for servers";
    let diagnostic = Diagnostic::without_place(Code::InvalidFile, message).help(FLEET_FEATURE);
    let diagnostics = Diagnostics::new(Source::new("fleet", ""), vec![diagnostic]);
    Err(Failure::Diagnostics(diagnostics, Format::Text))
}
