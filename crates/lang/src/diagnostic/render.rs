//! Renders diagnostics as text, with `ariadne`.

use ariadne::{CharSet, Color, Config, Fmt, IndexType, Label, Report, ReportKind, Source as Lines};

use super::sanitized::{SanitizedSource, SourceRange};
use super::{Diagnostic, Diagnostics, Severity};
use crate::source::Source;

/// Renders all of them, each followed by an empty line.
pub(super) fn render(diagnostics: &Diagnostics, colour: bool) -> String {
    let source = diagnostics.source();
    let drawn = SanitizedSource::new(source);
    let mut out = Vec::new();
    let mut lines = (drawn.name(), Lines::from(drawn.text()));
    for diagnostic in diagnostics.list() {
        if diagnostic.labels.is_empty() || !can_be_drawn(diagnostic, &drawn) {
            out.extend(render_plain(diagnostic, source, drawn.name(), colour).into_bytes());
            continue;
        }
        // Writing to a vector does not fail; a report that cannot be drawn is not worth a panic.
        if report(diagnostic, &drawn, colour).write(&mut lines, &mut out).is_ok() {
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

fn report<'a>(
    diagnostic: &Diagnostic,
    drawn: &'a SanitizedSource,
    colour: bool,
) -> Report<'a, SourceRange<'a>> {
    let (kind, hue) = match diagnostic.severity() {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let start = diagnostic.span().unwrap_or_default();
    let config = Config::default()
        .with_color(colour)
        .with_char_set(CharSet::Unicode)
        .with_index_type(IndexType::Byte);
    let mut builder = Report::build(kind, drawn.place(start))
        .with_config(config)
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message);
    for (number, label) in diagnostic.labels.iter().enumerate() {
        // A label that only contains the others would be drawn across them.
        if label.text.is_empty() && diagnostic.labels.len() > 1 {
            continue;
        }
        // ariadne starts a new frame wherever the order goes back to an earlier line.
        let mark = Label::new(drawn.place(label.span)).with_order(label.span.end as i32);
        // A label without text would not be drawn.
        let mark = mark.with_message(if label.text.is_empty() { "here" } else { &label.text });
        builder.add_label(mark.with_color(if number == 0 { hue } else { Color::Blue }));
    }
    for note in &diagnostic.notes {
        builder.add_note(note);
    }
    if let Some(help) = &diagnostic.help {
        builder.add_help(help);
    }
    builder.finish()
}

/// The longest range drawn for one label, in bytes: from the start of its first line to the end of
/// its last. Longer ones are unreadable and slow to draw.
const LONGEST: usize = 4000;

fn can_be_drawn(diagnostic: &Diagnostic, drawn: &SanitizedSource) -> bool {
    diagnostic.labels.iter().all(|label| {
        let (_, range) = drawn.place(label.span);
        let (before, after) = (&drawn.text()[..range.start], &drawn.text()[range.end..]);
        let head = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        let tail = after.find('\n').unwrap_or(after.len());
        head + range.len() + tail <= LONGEST
    })
}

/// Renders a diagnostic without source lines: one outside the text, for which `ariadne` would omit
/// the help, or one in lines too long to draw.
fn render_plain(diagnostic: &Diagnostic, source: &Source, name: &str, colour: bool) -> String {
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
        text.push_str(&format!("   {name}:{line}:{column}{colon}{}\n", label.text));
    }
    let help = diagnostic.help.iter().map(|help| ("Help", help));
    for (word, line) in help.chain(diagnostic.notes.iter().map(|note| ("Note", note))) {
        text.push_str(&format!("   {word}: {line}\n"));
    }
    text.push('\n');
    text
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

    #[test]
    fn an_endless_name_is_cut() {
        let name = "q".repeat(3_900_000);
        let text = format!("def f(float(N) A) -> (B) {{ B(i) = A(i) + {name}(i) }}");
        let report = Module::parse("t.tc", &text).unwrap_err();
        assert!(report.to_string().len() < 2000, "{} bytes", report.to_string().len());
        assert!(report.list().iter().all(|problem| problem.message.len() < 1000));
    }

    #[test]
    fn nothing_of_a_text_is_obeyed() {
        let text = "def f(float(N) A) -> (B) {\r\n B(i) = \u{1b}[31m\u{202e}A(i) # \u{9b}0m\r\n}";
        let report = Module::parse("t\u{1b}[2J.tc", text).unwrap_err();
        let shown = report.to_string();
        assert!(!shown.chars().any(crate::text::is_obeyed), "{shown:?}");
        insta::assert_snapshot!(shown);
    }
}
