//! Problems on standard error (as text) or standard output (as JSON, where a program reads them).

use std::io::{IsTerminal, Write};

use serde::Serialize;
use tensorwright::{Diagnostics, Severity};

use crate::args::Format;
use crate::terminal;

/// A diagnostic for editors: lines and columns are one-based, columns count characters.
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

/// Diagnostics as data.
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

/// Shows problems.
pub(crate) fn problems(diagnostics: &Diagnostics, format: Format) {
    match format {
        Format::Text if diagnostics.list().is_empty() => {}
        Format::Text => on_stderr(diagnostics),
        Format::Json => {
            let value = serde_json::json!({ "diagnostics": as_json(diagnostics) });
            // A reader that has gone away is not an error worth more words.
            let _ = json(&value);
        }
    }
}

/// Shows problems as text, beside a result that standard output has.
pub(crate) fn on_stderr(diagnostics: &Diagnostics) {
    let text = diagnostics.render(colour());
    // If nobody listens, there is nobody to tell.
    let _ = terminal::coloured_err().write_all(text.as_bytes());
}

/// Prints a value as JSON on standard output.
pub(crate) fn json(value: &impl Serialize) -> std::io::Result<()> {
    let mut out = terminal::json();
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")
}

/// Colours where a person looks at a terminal and has not asked for none.
pub(crate) fn colour() -> bool {
    let asked_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !asked_for_none
}
