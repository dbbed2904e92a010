//! Settings as defaults of the command line, so that what is typed counts first and `--help` shows them.

use super::{Origin, Settings};

/// The command line with the defaults that settings say.
pub(crate) fn with_defaults(mut command: clap::Command, settings: &Settings) -> clap::Command {
    if settings.threads.from != Origin::Default {
        command = with_default(command, "threads", &settings.threads.value.to_string());
    }
    if settings.target.from != Origin::Default {
        command = with_default(command, "target", &settings.target.value);
    }
    command
}

/// Every argument of this name that has a default gets another.
fn with_default(mut command: clap::Command, name: &'static str, value: &str) -> clap::Command {
    let has = command
        .get_arguments()
        .any(|argument| argument.get_id() == name && !argument.get_default_values().is_empty());
    if has {
        // Once or twice in the life of a process, which is what the parser asks for.
        let value: &'static str = value.to_owned().leak();
        command = command
            .mut_arg(name, |argument| argument.default_value(value).hide_default_value(false));
    }
    command.mut_subcommands(|command| with_default(command, name, value))
}
