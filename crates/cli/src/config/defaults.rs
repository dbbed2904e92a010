//! Settings as defaults of the command line.
//!
//! So typed options take precedence, and `--help` shows the settings.

use super::{Origin, Settings};

/// The command line with the settings as defaults.
pub(crate) fn with_defaults(mut command: clap::Command, settings: &Settings) -> clap::Command {
    if settings.threads.from != Origin::Default {
        command = with_default(command, "threads", &settings.threads.value.to_string());
    }
    if settings.target.from != Origin::Default {
        command = with_default(command, "target", &settings.target.value);
    }
    command
}

/// Changes the default of every argument with this name that has one.
fn with_default(mut command: clap::Command, name: &'static str, value: &str) -> clap::Command {
    let has = command
        .get_arguments()
        .any(|argument| argument.get_id() == name && !argument.get_default_values().is_empty());
    if has {
        // Leaked once or twice per process; clap needs `'static`.
        let value: &'static str = value.to_owned().leak();
        command = command
            .mut_arg(name, |argument| argument.default_value(value).hide_default_value(false));
    }
    command.mut_subcommands(|command| with_default(command, name, value))
}
