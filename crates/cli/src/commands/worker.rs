//! `tensorwright worker`: the child process in which candidates are built and run.

use clap::Args;

/// A child process of the tuner; not for people.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// What the tuner says
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Serves the tuner until it goes away.
pub(crate) fn run(args: &WorkerArgs) -> u8 {
    crate::worker(args.args.iter().cloned())
}
