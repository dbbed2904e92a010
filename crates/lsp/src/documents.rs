//! The open documents and their cached analyses.

use std::collections::BTreeMap;

use lsp_types::{TextDocumentContentChangeEvent, Uri};

use crate::analysis::Analysis;
use crate::position::LineIndex;

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    text: String,
    /// Computed lazily after the last change.
    analysis: Option<Analysis>,
    /// Whether the diagnostics of this version are unpublished.
    pub(crate) unpublished: bool,
}

/// All open documents, by URI.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: BTreeMap<String, Document>,
}

impl Documents {
    pub(crate) fn open(&mut self, uri: Uri, version: i32, text: String) {
        let key = uri.as_str().to_owned();
        let document = Document { uri, version, text, analysis: None, unpublished: true };
        self.open.insert(key, document);
    }

    /// Applies a change to an open document; ignores changes to others.
    pub(crate) fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) {
        let Some(document) = self.open.get_mut(uri.as_str()) else { return };
        for change in changes {
            apply(&mut document.text, change);
        }
        document.version = version;
        document.analysis = None;
        document.unpublished = true;
    }

    pub(crate) fn close(&mut self, uri: &Uri) {
        self.open.remove(uri.as_str());
    }

    pub(crate) fn get(&mut self, uri: &Uri) -> Option<&mut Document> {
        self.open.get_mut(uri.as_str())
    }

    pub(crate) fn unpublished(&mut self) -> impl Iterator<Item = &mut Document> {
        self.open.values_mut().filter(|document| document.unpublished)
    }
}

impl Document {
    pub(crate) fn analysis(&mut self) -> &Analysis {
        let name = self.uri.path().as_str().rsplit('/').next().unwrap_or_default();
        self.analysis.get_or_insert_with(|| Analysis::new(name, &self.text))
    }
}

/// Replaces a range of the text, or all of it. Swapped ends are put in order.
fn apply(text: &mut String, change: TextDocumentContentChangeEvent) {
    let Some(range) = change.range else {
        *text = change.text;
        return;
    };
    let lines = LineIndex::new(text);
    let (start, end) = (lines.offset(range.start), lines.offset(range.end));
    text.replace_range(start.min(end)..start.max(end), &change.text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsp_types::{Position, Range};

    fn changed(text: &str, (from, to): ((u32, u32), (u32, u32)), with: &str) -> String {
        let mut text = text.to_owned();
        let at = |(line, character)| Position::new(line, character);
        let range = Some(Range::new(at(from), at(to)));
        apply(
            &mut text,
            TextDocumentContentChangeEvent { range, range_length: None, text: with.to_owned() },
        );
        text
    }

    #[test]
    fn changes_count_utf16_units() {
        assert_eq!(changed("# 😀ü x\ny", ((0, 5), (0, 6)), "-"), "# 😀ü-x\ny");
        assert_eq!(changed("ab\ncd", ((0, 1), (1, 1)), ""), "ad");
        assert_eq!(changed("ab\r\ncd", ((0, 2), (1, 0)), " "), "ab cd");
    }

    #[test]
    fn changes_outside_of_the_text_are_made_at_its_end() {
        assert_eq!(changed("ab", ((5, 0), (9, 9)), "!"), "ab!");
        assert_eq!(changed("ab", ((0, 2), (0, 1)), "!"), "a!", "ends in the wrong order");
    }
}
