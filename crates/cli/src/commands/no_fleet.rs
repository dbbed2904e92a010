//! `tensorwright fleet` in builds without the feature `fleet`.

use clap::Args;
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
    Err(Failure::without_place("fleet", message, FLEET_FEATURE, Format::Text))
}
