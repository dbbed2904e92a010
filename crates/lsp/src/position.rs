//! Converts between byte offsets and protocol positions (lines and UTF-16 units).

use lsp_types::{Position, Range};
use tensorwright_lang::source::Span;

/// Where the lines of a text start. A line ends with `\n`, `\r\n` or `\r`, as the protocol says.
#[derive(Debug)]
pub(crate) struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let ends_line = |at: usize| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let starts = (0..bytes.len()).filter(|at| ends_line(*at)).map(|at| at + 1);
        Self { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The byte offset of a position. Positions past the end of a line or of the text are clamped;
    /// those inside a character move to its start.
    pub(crate) fn offset(&self, position: Position) -> usize {
        let Some(start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let mut units = position.character as usize;
        let line = self.line(position.line as usize);
        for (at, character) in line.char_indices() {
            if units < character.len_utf16() {
                return start + at;
            }
            units -= character.len_utf16();
        }
        start + line.len()
    }

    /// The position of a byte offset; inside a character, the position of its start.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let before = &self.text[self.starts[line]..offset];
        let units: usize = before.chars().map(char::len_utf16).sum();
        Position::new(line as u32, units as u32)
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        Range::new(self.position(span.start as usize), self.position(span.end as usize))
    }

    /// A line without its terminator.
    fn line(&self, number: usize) -> &'t str {
        let end = self.starts.get(number + 1).copied().unwrap_or(self.text.len());
        self.text[self.starts[number]..end].trim_end_matches(['\n', '\r'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position::new(line, character)
    }

    #[test]
    fn positions_count_utf16_units() {
        // One byte, two bytes and one unit, four bytes and two units.
        let text = "aü😀b\nc";
        let lines = LineIndex::new(text);
        for (offset, position) in [
            (0, at(0, 0)),
            (1, at(0, 1)),
            (3, at(0, 2)),
            (7, at(0, 4)),
            (8, at(0, 5)),
            (9, at(1, 0)),
        ] {
            assert_eq!(lines.position(offset), position, "byte {offset}");
            assert_eq!(lines.offset(position), offset, "{position:?}");
        }
        assert_eq!(lines.position(5), at(0, 2), "inside of the emoji");
        assert_eq!(lines.offset(at(0, 3)), 3, "between its halves");
    }

    #[test]
    fn all_line_ends_of_the_protocol_count() {
        let lines = LineIndex::new("a\r\nb\rc\n\nd");
        assert_eq!(lines.starts, [0, 3, 5, 7, 8]);
        assert_eq!(lines.offset(at(0, 9)), 1, "before the line end");
        assert_eq!(lines.offset(at(3, 9)), 7);
    }

    #[test]
    fn what_lies_outside_is_at_the_end() {
        let lines = LineIndex::new("ab\nc");
        assert_eq!(lines.offset(at(7, 0)), 4);
        assert_eq!(lines.offset(at(1, u32::MAX)), 4);
        assert_eq!(lines.position(99), at(1, 1));
        assert_eq!(LineIndex::new("").offset(at(0, 1)), 0);
    }

    #[test]
    fn every_byte_of_a_text_comes_back() {
        let text = "# größe 😀 → 𝛼\r\ndef f() -> (é) {\r}\n";
        let lines = LineIndex::new(text);
        for (offset, _) in text.char_indices() {
            // `\r\n` is one terminator: its second byte has no position of its own.
            if !text[..offset].ends_with('\r') || !text[offset..].starts_with('\n') {
                assert_eq!(lines.offset(lines.position(offset)), offset, "byte {offset}");
            }
        }
    }
}
