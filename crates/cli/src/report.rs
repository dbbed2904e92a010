//! Diagnostics on standard error (text) or standard output (JSON).

use std::io::{IsTerminal, Write};

use serde::Serialize;
use tensorwright::{Diagnostics, Severity};

use crate::args::Format;
use crate::terminal;

/// A diagnostic for editors: lines and columns are one-based; columns count characters.
#[derive(Debug, Serialize)]
pub(crate) struct JsonDiagnostic {
    file: String,
    code: &'static str,
    severity: Severity,
    message: String,
    labels: Vec<JsonLabel>,
    notes: Vec<String>,
    help: Option<String>,
    fix: Option<JsonFix>,
}

#[derive(Debug, Serialize)]
struct JsonLabel {
    #[serde(flatten)]
    place: JsonPlace,
    text: String,
}

#[derive(Debug, Serialize)]
struct JsonFix {
    #[serde(flatten)]
    place: JsonPlace,
    replacement: String,
}

#[derive(Debug, Serialize)]
struct JsonPlace {
    start: JsonPosition,
    end: JsonPosition,
}

#[derive(Debug, Serialize)]
struct JsonPosition {
    offset: u32,
    line: usize,
    column: usize,
}

/// Diagnostics as JSON values.
pub(crate) fn as_json(diagnostics: &Diagnostics) -> Vec<JsonDiagnostic> {
    let source = diagnostics.source();
    let position = |offset| {
        let (line, column) = source.line_column(offset);
        JsonPosition { offset, line, column }
    };
    let place = |span: tensorwright::Span| JsonPlace {
        start: position(span.start),
        end: position(span.end),
    };
    let one = |d: &tensorwright::Diagnostic| JsonDiagnostic {
        file: source.name().to_owned(),
        code: d.code.id(),
        severity: d.severity(),
        message: d.message.clone(),
        labels: d
            .labels
            .iter()
            .map(|label| JsonLabel { place: place(label.span), text: label.text.clone() })
            .collect(),
        notes: d.notes.clone(),
        help: d.help.clone(),
        fix: d
            .fix
            .as_ref()
            .map(|fix| JsonFix { place: place(fix.span), replacement: fix.replacement.clone() }),
    };
    diagnostics.list().iter().map(one).collect()
}

/// Prints diagnostics.
pub(crate) fn problems(diagnostics: &Diagnostics, format: Format) {
    match format {
        Format::Text if diagnostics.list().is_empty() => {}
        Format::Text => on_stderr(diagnostics),
        Format::Json => {
            let value = serde_json::json!({ "diagnostics": as_json(diagnostics) });
            // A closed pipe is not worth another error.
            let _ = json(&value);
        }
    }
}

/// Prints diagnostics as text on standard error.
pub(crate) fn on_stderr(diagnostics: &Diagnostics) {
    let text = diagnostics.render(colour());
    // A closed stream is not an error here.
    let _ = terminal::coloured_err().write_all(text.as_bytes());
}

/// Prints a value as JSON on standard output.
pub(crate) fn json(value: &impl Serialize) -> std::io::Result<()> {
    let mut out = terminal::json();
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")
}

/// Whether to use colours: standard error is a terminal and `NO_COLOR` is unset.
pub(crate) fn colour() -> bool {
    let asked_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !asked_for_none
}
