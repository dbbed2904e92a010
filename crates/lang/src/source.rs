//! Source text and spans.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The largest source text, in bytes. Larger texts are rejected before lexing.
pub const MAX_SOURCE_BYTES: usize = 4 << 20;

/// A half-open range of bytes in a [`Source`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset one past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end`, in bytes.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether `other` lies inside this span.
    #[must_use]
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A named source text, cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
}

impl Source {
    /// Pairs a text with the name that diagnostics show for it (a file name, or `<input>`).
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// The name that diagnostics show.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span, or `""` if the span is invalid.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The one-based line and column (in characters) of a byte offset.
    #[must_use]
    pub fn line_column(&self, offset: u32) -> (usize, usize) {
        let mut end = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).field("bytes", &self.text.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters() {
        let source = Source::new("t", "ab\né x");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(3), (2, 1));
        assert_eq!(source.line_column(5), (2, 2));
        assert_eq!(source.line_column(4), (2, 1), "inside a character: its start");
        assert_eq!(source.line_column(99), (2, 4));
    }
}
