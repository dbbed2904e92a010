//! Diagnostics as text for people, drawn by `ariadne`.

use std::ops::Range;

use ariadne::{CharSet, Color, Config, Fmt, IndexType, Label, Report, ReportKind, Source as Lines};

use super::{Diagnostic, Diagnostics, Severity};
use crate::source::{Source, Span};

/// Renders all of them, each followed by an empty line.
pub(super) fn render(diagnostics: &Diagnostics, colour: bool) -> String {
    let source = diagnostics.source();
    let mut out = Vec::new();
    let mut lines = (source.name(), Lines::from(source.text()));
    for diagnostic in diagnostics.list() {
        if diagnostic.labels.is_empty() {
            out.extend(without_place(diagnostic, colour).into_bytes());
            continue;
        }
        // Writing to a vector does not fail; a report that could not be drawn is not worth a panic.
        if report(diagnostic, source, colour).write(&mut lines, &mut out).is_ok() {
            out.push(b'\n');
        }
    }
    let mut text = String::from_utf8_lossy(&out).into_owned();
    if diagnostics.dropped() > 0 {
        text.push_str(&format!("... and {} more\n", diagnostics.dropped()));
    }
    // ariadne pads empty lines of its frame with blanks.
    let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
    trimmed.join("\n") + "\n"
}

type Place<'a> = (&'a str, Range<usize>);

fn report<'a>(diagnostic: &Diagnostic, source: &'a Source, colour: bool) -> Report<'a, Place<'a>> {
    let (kind, hue) = match diagnostic.severity() {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let start = diagnostic.span().unwrap_or_default();
    let config = Config::default()
        .with_color(colour)
        .with_char_set(CharSet::Unicode)
        .with_index_type(IndexType::Byte);
    let mut builder = Report::build(kind, place(source, start))
        .with_config(config)
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message);
    for (number, label) in diagnostic.labels.iter().enumerate() {
        // A place that is only there to contain the others would be drawn across them.
        if label.text.is_empty() && diagnostic.labels.len() > 1 {
            continue;
        }
        // ariadne starts a new frame wherever the order goes back to an earlier line.
        let drawn = Label::new(place(source, label.span)).with_order(label.span.end as i32);
        // Without a text a place would not be marked at all.
        let drawn = drawn.with_message(if label.text.is_empty() { "here" } else { &label.text });
        builder.add_label(drawn.with_color(if number == 0 { hue } else { Color::Blue }));
    }
    for note in &diagnostic.notes {
        builder.add_note(note);
    }
    if let Some(help) = &diagnostic.help {
        builder.add_help(help);
    }
    builder.finish()
}

/// A problem outside of the text: `ariadne` would leave out its help.
fn without_place(diagnostic: &Diagnostic, colour: bool) -> String {
    let (kind, hue) = match diagnostic.severity() {
        Severity::Error => ("Error", Color::Red),
        Severity::Warning => ("Warning", Color::Yellow),
    };
    let title = format!("[{}] {kind}:", diagnostic.code);
    let title = if colour { title.fg(hue).to_string() } else { title };
    let mut text = format!("{title} {}\n", diagnostic.message);
    let help = diagnostic.help.iter().map(|help| ("Help", help));
    for (word, line) in help.chain(diagnostic.notes.iter().map(|note| ("Note", note))) {
        text.push_str(&format!("   {word}: {line}\n"));
    }
    text.push('\n');
    text
}

/// A range that `ariadne` can draw: inside the text and on boundaries of characters.
fn place(source: &Source, span: Span) -> Place<'_> {
    let text = source.text();
    let clip = |offset: u32| {
        let mut offset = (offset as usize).min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    };
    let start = clip(span.start);
    (source.name(), start..clip(span.end).max(start))
}
