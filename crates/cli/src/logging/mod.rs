//! Logging and traces: lines on standard error and a Chrome trace file.
//!
//! Crates emit `tracing` spans and events, which cost almost nothing without a subscriber. This
//! module installs the subscriber.

mod chrome;

use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use tensorwright::{Code, Diagnostic, Diagnostics, Source};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, fmt};

use crate::terminal;
use chrome::{Chrome, Writer};

/// The filter by module: `info`, or `warn,tensorwright_tuner=debug`.
pub(crate) const LOG: &str = "TENSORWRIGHT_LOG";
/// The trace file.
pub(crate) const TRACE: &str = "TENSORWRIGHT_TRACE";

/// Logging options.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LoggingArgs {
    /// Print progress and timings to stderr; twice for more. $TENSORWRIGHT_LOG sets levels by
    /// module
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Write a trace of all phases for ui.perfetto.dev [default: $TENSORWRIGHT_TRACE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) trace_file: Option<PathBuf>,
}

/// Completes the trace when dropped.
#[derive(Debug, Default)]
#[must_use]
pub struct LoggingGuard {
    trace: Option<Writer>,
}

impl Drop for LoggingGuard {
    fn drop(&mut self) {
        if let Some(trace) = &self.trace {
            trace.finish();
        }
    }
}

/// Initialises logging and traces from `TENSORWRIGHT_LOG` and `TENSORWRIGHT_TRACE`, for library
/// users.
///
/// # Errors
/// Invalid variables, as readable text.
pub fn init_logging_from_environment() -> Result<LoggingGuard, String> {
    init(&LoggingArgs::default()).map_err(|problem| problem.render(false))
}

/// Installs the subscriber. A subscriber installed earlier in this process stays.
pub(crate) fn init(args: &LoggingArgs) -> Result<LoggingGuard, Diagnostics> {
    let lines = log_filter(args.verbose)?;
    let named = std::env::var_os(TRACE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let trace = args.trace_file.clone().or(named).map(|path| create(&path)).transpose()?;
    if lines.is_none() && trace.is_none() {
        return Ok(LoggingGuard::default());
    }
    let lines = lines.map(|filter| {
        // Colours are escape sequences, which are let through only with colours enabled.
        let has_colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let writer = if has_colours { terminal::coloured_err } else { terminal::err };
        fmt::layer()
            .with_writer(writer)
            .with_ansi(has_colours)
            .with_timer(uptime())
            .with_span_events(FmtSpan::CLOSE)
            .with_filter(filter)
    });
    let own = Targets::new().with_target("tensorwright", LevelFilter::DEBUG);
    let chrome = trace.clone().map(|writer| Chrome::new(writer).with_filter(own));
    let started: Result<(), TryInitError> =
        tracing_subscriber::registry().with(lines).with(chrome).try_init();
    Ok(LoggingGuard { trace: trace.filter(|_| started.is_ok()) })
}

/// The log filter, from the variable or the number of `-v`.
fn log_filter(verbose: u8) -> Result<Option<Targets>, Diagnostics> {
    let own = |level| Targets::new().with_target("tensorwright", level);
    match verbose {
        0 => {}
        1 => return Ok(Some(own(LevelFilter::INFO))),
        2 => return Ok(Some(own(LevelFilter::DEBUG))),
        _ => return Ok(Some(own(LevelFilter::TRACE))),
    }
    let said = std::env::var(LOG).unwrap_or_default();
    if said.trim().is_empty() {
        return Ok(None);
    }
    said.parse().map(Some).map_err(|_| {
        let message = format!("{LOG} is `{said}`, which names no level");
        let help = "levels are off, error, warn, info, debug and trace; a module before `=` has its own, such as \
                    `info,tensorwright_tuner=debug`";
        problem(message, help)
    })
}

fn create(path: &Path) -> Result<Writer, Diagnostics> {
    let file = File::create(path).map_err(|error| {
        let message = format!("cannot write the trace {}: {error}", path.display());
        problem(message, "name a file in a folder that exists and that you may write to")
    })?;
    Ok(Writer::new(Box::new(BufWriter::new(file))))
}

fn problem(message: String, help: &str) -> Diagnostics {
    let diagnostic = Diagnostic::without_place(Code::InvalidFile, message).help(help);
    Diagnostics::new(Source::new("command line", ""), vec![diagnostic])
}
