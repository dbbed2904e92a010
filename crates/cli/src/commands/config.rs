//! `tensorwright config`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::db::table::{bytes, table};
use crate::args::{Format, OutputArgs};
use crate::config::{Level, Origin, Settings, load, load_file};
use crate::failure::{InFormat, Outcome};
use crate::report;

/// Show the settings in use and where each comes from
///
/// Precedence: command-line options, environment variables, the project's `tensorwright.toml` (in
/// the current folder or above it in the same repository), the user's. docs/configuration.md
/// describes the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tensorwright config
  tensorwright config tensorwright.toml       # what this file alone says, and whether it is right
  TENSORWRIGHT_CONFIG= tensorwright config    # without any file")]
pub(crate) struct ConfigArgs {
    /// Read only this file, and no environment variables
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Prints the settings.
pub(crate) fn run(args: &ConfigArgs) -> Outcome {
    let format = args.output.format;
    let settings = match &args.file {
        Some(file) => load_file(file),
        None => load(),
    };
    let settings = settings.in_format(format)?;
    let rows = rows(&settings);
    if format == Format::Json {
        let all = rows
            .iter()
            .map(|(name, value, from)| json!({ "name": name, "value": value, "from": from }));
        let value = json!({ "settings": all.collect::<Vec<_>>(), "files": settings.places });
        return Ok(report::json(&value)?);
    }
    let mut out = crate::terminal::out();
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value, from)| {
            vec![name.to_owned(), value.unwrap_or_else(|| "none".to_owned()), from.to_string()]
        })
        .collect();
    write!(out, "{}", table(&["setting", "value", "from"], &rows))?;
    for place in &settings.places {
        let whose = match place.level {
            Level::User => "the user's file",
            Level::Project => "the project's file",
            Level::Named => "the file",
        };
        let found = if place.found { "read" } else { "not there" };
        writeln!(out, "{whose}: {} ({found})", place.path.display())?;
    }
    Ok(())
}

/// Name, value and origin of every setting.
fn rows(settings: &Settings) -> Vec<(&'static str, Option<String>, &Origin)> {
    let Settings { database, threads, target, cache_limit, deadline, .. } = settings;
    vec![
        ("database", database.value.as_ref().map(ToString::to_string), &database.from),
        ("threads", Some(threads.value.to_string()), &threads.from),
        ("target", Some(target.value.clone()), &target.from),
        ("cache.limit", cache_limit.value.map(bytes), &cache_limit.from),
        ("device.deadline", Some(format!("{:?}", deadline.value)), &deadline.from),
    ]
}
