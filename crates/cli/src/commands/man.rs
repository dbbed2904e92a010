//! `tensorwright man`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use tensorwright::{Code, Diagnostic, Diagnostics, Source};

use crate::args::Format;
use crate::failure::{Failure, Outcome};

/// Write manual pages: one for the command and one for each subcommand
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright man ~/.local/share/man/man1     # then: man tensorwright-tune
  tensorwright man | man -l -                  # the page of the command itself")]
pub(crate) struct ManArgs {
    /// The output folder, created if missing; without it, the main page goes to standard output
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Writes the pages.
pub(crate) fn run(args: &ManArgs, mut command_line: clap::Command) -> Outcome {
    // Line breaks of the long version would become paragraphs.
    command_line = command_line.version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    command_line.build();
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command_line).render(&mut page)?;
        return Ok(std::io::stdout().write_all(&page)?);
    };
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command_line, folder));
    written.map_err(|error| {
        let message = format!("cannot write manual pages to {}: {error}", folder.display());
        let diagnostic = Diagnostic::without_place(Code::InvalidFile, message)
            .help("name a folder that you may write to");
        let source = Source::new("command line", "");
        Failure::Diagnostics(Diagnostics::new(source, vec![diagnostic]), Format::Text)
    })
}
