//! Source text with control characters replaced, for reports.

use std::borrow::Cow;
use std::ops::Range;

use crate::source::{Source, Span};
use crate::text::{is_obeyed, printable};

/// A byte range of a named text, for `ariadne`.
pub(super) type SourceRange<'a> = (&'a str, Range<usize>);

/// A text in which terminal control characters are replaced one by one, so that columns are
/// unchanged.
pub(super) struct SanitizedSource<'a> {
    name: Cow<'a, str>,
    text: Cow<'a, str>,
    /// Pairs of a source offset and the offset in the text, in order.
    moved: Vec<(usize, usize)>,
}

impl<'a> SanitizedSource<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        let mut drawn = Self {
            name: printable(source.name()),
            text: Cow::Borrowed(source.text()),
            moved: Vec::new(),
        };
        if source.text().chars().any(is_obeyed) {
            drawn.replace(source.text());
        }
        drawn
    }

    fn replace(&mut self, source: &str) {
        let mut text = String::with_capacity(source.len() + 8);
        for (offset, c) in source.char_indices() {
            let ends_line = c == '\r' && source[offset..].starts_with("\r\n");
            if ends_line || !is_obeyed(c) {
                text.push(c);
                continue;
            }
            text.push(picture(c));
            self.moved.push((offset + c.len_utf8(), text.len()));
        }
        self.text = Cow::Owned(text);
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Converts a span to a range inside the text and on character boundaries.
    pub(super) fn place(&self, span: Span) -> SourceRange<'_> {
        let start = self.offset(span.start as usize);
        (self.name(), start..self.offset(span.end as usize).max(start))
    }

    fn offset(&self, offset: usize) -> usize {
        let before = self.moved.partition_point(|(from, _)| *from <= offset);
        let (from, to) = before.checked_sub(1).map_or((0, 0), |last| self.moved[last]);
        let mut offset = (to + (offset - from)).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// The replacement of a control character: Unicode has pictures of the ASCII ones.
fn picture(c: char) -> char {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_move_with_what_is_replaced() {
        let source = Source::new("t", "a\u{1b}b\u{202e}c\r\nd\rx");
        let drawn = SanitizedSource::new(&source);
        assert_eq!(drawn.text(), "a\u{241b}b\u{fffd}c\r\nd\u{240d}x");
        let shown = |start, end| &drawn.text()[drawn.place(Span::new(start, end)).1];
        assert_eq!(shown(0, 1), "a");
        assert_eq!(shown(1, 2), "\u{241b}");
        assert_eq!(shown(2, 3), "b");
        assert_eq!(shown(3, 6), "\u{fffd}");
        assert_eq!(shown(6, 7), "c");
        assert_eq!(shown(11, 12), "x");
        assert_eq!(shown(12, 900), "");
        assert_eq!(shown(4, 6), "\u{fffd}", "inside of a character");
    }
}
