//! Diagnostics: codes, messages, labels and fixes.

mod codes;
mod render;
mod sanitized;
mod suggest;

pub use codes::{Code, Severity};
pub use suggest::nearest;

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::source::{Source, Span};
use crate::text::readable;

/// A text attached to a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Label {
    /// The span.
    pub span: Span,
    /// The text.
    pub text: String,
}

/// An edit that fixes the problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fix {
    /// The span to replace; empty to insert.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// A diagnostic: a code, a message, labels and help.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The code.
    pub code: Code,
    /// The message, one sentence.
    pub message: String,
    /// The span of the problem first, then related ones. Empty only for problems outside the text,
    /// such as a missing size.
    pub labels: Vec<Label>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// The fix, where one is certain enough for an editor to offer.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// Creates a diagnostic at a span.
    #[must_use]
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::without_place(code, message).label(span, "")
    }

    /// Creates a diagnostic about something outside the text.
    #[must_use]
    pub fn without_place(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// Sets the text at the primary span.
    #[must_use]
    pub fn here(mut self, text: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.text = text.into();
        }
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Sets the help text.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Sets the fix.
    #[must_use]
    pub fn fix(mut self, span: Span, replacement: impl Into<String>) -> Self {
        self.fix = Some(Fix { span, replacement: replacement.into() });
        self
    }

    /// The primary span.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }

    /// Whether it is an error or a warning.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Makes all texts readable: they quote user input.
    fn make_readable(&mut self) {
        let labels = self.labels.iter_mut().map(|label| &mut label.text);
        let sentences = std::iter::once(&mut self.message).chain(labels);
        for text in sentences.chain(&mut self.notes).chain(&mut self.help) {
            if let Cow::Owned(shown) = readable(text) {
                *text = shown;
            }
        }
    }
}

/// All diagnostics of one source text, errors first in source order.
#[derive(Clone, PartialEq)]
pub struct Diagnostics {
    source: Source,
    list: Vec<Diagnostic>,
    dropped: usize,
}

/// The most diagnostics kept for one text; the rest are counted.
pub const MAX_DIAGNOSTICS: usize = 50;

impl Diagnostics {
    /// Sorts the diagnostics of a text, removes duplicates and keeps the first [`MAX_DIAGNOSTICS`].
    /// Quoted input is made [`readable`] here, once for all consumers.
    #[must_use]
    pub fn new(source: Source, mut list: Vec<Diagnostic>) -> Self {
        let key = |d: &Diagnostic| (std::cmp::Reverse(d.severity()), d.span(), d.code);
        list.sort_by_key(key);
        list.dedup_by(|a, b| a.code == b.code && a.span() == b.span() && a.message == b.message);
        let dropped = list.len().saturating_sub(MAX_DIAGNOSTICS);
        list.truncate(MAX_DIAGNOSTICS);
        list.iter_mut().for_each(Diagnostic::make_readable);
        Self { source, list, dropped }
    }

    /// The source text.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The diagnostics.
    #[must_use]
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The number of diagnostics beyond [`MAX_DIAGNOSTICS`].
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether any is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }

    /// Renders the whole report with source lines; with colours if requested.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        render::render(self, colour)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Diagnostics {}
