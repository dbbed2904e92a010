//! Validates source bytes: size and encoding.

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::source::{MAX_SOURCE_BYTES, Source, Span};

/// Creates a source text from the bytes of a file.
///
/// # Errors
/// E0107 if there are more than [`MAX_SOURCE_BYTES`] bytes, E0106 if they are not UTF-8.
pub fn source_from_bytes(name: &str, bytes: &[u8]) -> Result<Source, Diagnostics> {
    if let Some(diagnostic) = too_large(bytes.len()) {
        return Err(Diagnostics::new(Source::new(name, ""), vec![diagnostic]));
    }
    std::str::from_utf8(bytes).map(|text| Source::new(name, text)).map_err(|error| {
        // Up to the first bad byte the lossy text has the offsets of the file, so the error can be
        // shown.
        let source = Source::new(name, &String::from_utf8_lossy(bytes));
        let diagnostic = not_utf8(bytes, error.valid_up_to());
        Diagnostics::new(source, vec![diagnostic])
    })
}

/// E0107 for a text that is too large.
pub(super) fn too_large(bytes: usize) -> Option<Diagnostic> {
    (bytes > MAX_SOURCE_BYTES).then(|| {
        Diagnostic::without_place(
            Code::SourceTooLarge,
            format!("the text has {bytes} bytes; at most {MAX_SOURCE_BYTES} are read"),
        )
        .help("split it into several files")
    })
}

fn not_utf8(bytes: &[u8], offset: usize) -> Diagnostic {
    let line = bytes.iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
    let bad = bytes.get(offset).copied().unwrap_or_default();
    let start = offset as u32;
    let replaced = char::REPLACEMENT_CHARACTER.len_utf8() as u32;
    Diagnostic::new(
        Code::NotUtf8,
        Span::new(start, start + replaced),
        format!("the text is not UTF-8: byte {bad:#04x} at offset {offset}, on line {line}"),
    )
    .here("this is not a character")
    .help("save the file as UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_bytes_become_a_source() {
        let source = source_from_bytes("t", "def é".as_bytes()).unwrap();
        assert_eq!((source.name(), source.text()), ("t", "def é"));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_located() {
        let error = source_from_bytes("t", b"# one\n# t\xffwo\n").unwrap_err();
        let [diagnostic] = error.list() else { panic!("one diagnostic: {error}") };
        assert_eq!(diagnostic.code, Code::NotUtf8);
        assert_eq!(diagnostic.span(), Some(Span::new(9, 12)));
        assert_eq!(diagnostic.message, "the text is not UTF-8: byte 0xff at offset 9, on line 2");
        assert_eq!(error.source().slice(Span::new(9, 12)), "\u{fffd}");
        assert_eq!(source_from_bytes("t", b"ab\xe2\x82").unwrap_err().list().len(), 1);
    }

    #[test]
    fn too_many_bytes_are_refused() {
        let error = source_from_bytes("t", &vec![b' '; MAX_SOURCE_BYTES + 1]).unwrap_err();
        assert_eq!(error.list()[0].code, Code::SourceTooLarge);
        assert!(source_from_bytes("t", &vec![b' '; MAX_SOURCE_BYTES]).is_ok());
    }
}
