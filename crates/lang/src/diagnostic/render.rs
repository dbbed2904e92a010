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
        if diagnostic.labels.is_empty() || !can_be_drawn(diagnostic, source) {
            out.extend(in_words(diagnostic, source, colour).into_bytes());
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

/// The longest stretch of text, in bytes, that is drawn for one label: from the start of its first
/// line to the end of its last. Nobody reads more, and drawing it takes long.
const LONGEST: usize = 4000;

fn can_be_drawn(diagnostic: &Diagnostic, source: &Source) -> bool {
    diagnostic.labels.iter().all(|label| {
        let (_, range) = place(source, label.span);
        let (before, after) = (&source.text()[..range.start], &source.text()[range.end..]);
        let head = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        let tail = after.find('\n').unwrap_or(after.len());
        head + range.len() + tail <= LONGEST
    })
}

/// A problem without its lines: one outside of the text, for which `ariadne` would leave out the
/// help, or one in lines that are too long to draw.
fn in_words(diagnostic: &Diagnostic, source: &Source, colour: bool) -> String {
    let (kind, hue) = match diagnostic.severity() {
        Severity::Error => ("Error", Color::Red),
        Severity::Warning => ("Warning", Color::Yellow),
    };
    let title = format!("[{}] {kind}:", diagnostic.code);
    let title = if colour { title.fg(hue).to_string() } else { title };
    let mut text = format!("{title} {}\n", diagnostic.message);
    for label in &diagnostic.labels {
        let (line, column) = source.line_column(label.span.start);
        let colon = if label.text.is_empty() { "" } else { ": " };
        text.push_str(&format!("   {}:{line}:{column}{colon}{}\n", source.name(), label.text));
    }
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

#[cfg(test)]
mod tests {
    use crate::Module;

    #[test]
    fn lines_that_are_too_long_to_read_are_not_drawn() {
        let terms = " + A(i)".repeat(1000);
        let long =
            Module::parse("t.tc", &format!("def f(float(N) A) -> (B) {{ B(i) = 1{terms} }}"));
        let report = long.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(report.contains("t.tc:1:"), "{report}");
        assert!(report.len() < 1000, "{} bytes", report.len());
    }
}
