//! What went wrong, where, and what to do about it.

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

/// A text attached to a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What there is to say about it.
    pub text: String,
}

/// A change of the text that would mend the problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fix {
    /// What to replace; empty to insert.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// One problem: a code, a sentence, places with labels, and help.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What it is about.
    pub code: Code,
    /// What is wrong, in a sentence.
    pub message: String,
    /// The place of the problem first, then related places. Empty only for problems outside the
    /// text, such as a missing size.
    pub labels: Vec<Label>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// The fix spelled out, where one is certain enough for an editor to offer.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// A diagnostic at a place.
    #[must_use]
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::without_place(code, message).label(span, "")
    }

    /// A diagnostic about something outside the text.
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

    /// Sets the text at the place of the problem.
    #[must_use]
    pub fn here(mut self, text: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.text = text.into();
        }
        self
    }

    /// Adds a place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact that explains the problem.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Spells out the change that mends it.
    #[must_use]
    pub fn fix(mut self, span: Span, replacement: impl Into<String>) -> Self {
        self.fix = Some(Fix { span, replacement: replacement.into() });
        self
    }

    /// The place of the problem.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }

    /// Whether it is an error or a warning.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Makes what it says fit to be read: texts of users are quoted in it.
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

/// All problems found in one source text, errors first in the order of the text.
#[derive(Clone, PartialEq)]
pub struct Diagnostics {
    source: Source,
    list: Vec<Diagnostic>,
    dropped: usize,
}

/// The most diagnostics that are kept for one text; a count stands for the rest.
pub const MAX_DIAGNOSTICS: usize = 50;

impl Diagnostics {
    /// Sorts the problems of a text, drops repetitions and keeps the first [`MAX_DIAGNOSTICS`].
    /// What they quote is made [`readable`] here, once for all who show them.
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

    /// The text that they are about.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The problems.
    #[must_use]
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// How many more there were than [`MAX_DIAGNOSTICS`].
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether there is an error among them.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }

    /// The whole report for people, with the lines of source text; with colours if asked.
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
