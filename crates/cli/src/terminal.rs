//! Standard output and standard error with escaped control characters.
//!
//! Names, texts and messages come from files, databases and other machines, and may hold escape
//! sequences that a terminal executes. All output of this crate goes through this module: [`out`]
//! for results, [`json`] for machine-readable results, and the macros `println!`, `eprint!` and
//! `eprintln!`, which replace those of the standard library and do not panic on a closed stream.

use std::fmt;
use std::io::{self, StderrLock, StdoutLock, Write};

use tensorwright::{is_obeyed, printable};

/// The sequence that clears the current line of a terminal.
pub(crate) const EMPTY_LINE: &str = "\r\x1b[K";

macro_rules! println {
    ($($argument:tt)*) => {
        $crate::terminal::line(&mut $crate::terminal::out(), format_args!($($argument)*))
    };
}

macro_rules! eprintln {
    ($($argument:tt)*) => {
        $crate::terminal::line(&mut $crate::terminal::err(), format_args!($($argument)*))
    };
}

macro_rules! eprint {
    ($($argument:tt)*) => {
        $crate::terminal::rewritten(format_args!($($argument)*))
    };
}

/// How control characters are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// `\u{1b}`
    Text,
    /// `\u001b`, which JSON decodes to the character itself.
    Json,
    /// As text, but colour sequences stay.
    Coloured,
}

/// A writer that escapes control characters.
pub(crate) struct EscapingWriter<W: Write> {
    inner: W,
    spelling: Spelling,
    /// The bytes of an incomplete UTF-8 character.
    incomplete: Vec<u8>,
}

/// Standard output as text.
pub(crate) fn out() -> EscapingWriter<StdoutLock<'static>> {
    EscapingWriter::new(io::stdout().lock(), Spelling::Text)
}

/// Standard output as JSON.
pub(crate) fn json() -> EscapingWriter<StdoutLock<'static>> {
    EscapingWriter::new(io::stdout().lock(), Spelling::Json)
}

/// Standard error.
pub(crate) fn err() -> EscapingWriter<StderrLock<'static>> {
    EscapingWriter::new(io::stderr().lock(), Spelling::Text)
}

/// Standard error with colours.
pub(crate) fn coloured_err() -> EscapingWriter<StderrLock<'static>> {
    EscapingWriter::new(io::stderr().lock(), Spelling::Coloured)
}

/// Writes a line; ignores a closed stream.
pub(crate) fn line(writer: &mut dyn Write, text: fmt::Arguments<'_>) {
    let _ = writeln!(writer, "{text}");
}

/// Writes to standard error; the text may begin with [`EMPTY_LINE`].
pub(crate) fn rewritten(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    let (empties, rest) = match text.strip_prefix(EMPTY_LINE) {
        Some(rest) => (EMPTY_LINE, rest),
        None => ("", text.as_str()),
    };
    let mut err = io::stderr().lock();
    let _ = write!(err, "{empties}{}", printable(rest)).and_then(|()| err.flush());
}

impl<W: Write> EscapingWriter<W> {
    fn new(inner: W, spelling: Spelling) -> Self {
        Self { inner, spelling, incomplete: Vec::new() }
    }

    fn show(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(place) = rest.find(is_obeyed) {
            let (before, obeyed) = rest.split_at(place);
            self.inner.write_all(before.as_bytes())?;
            let colour = if self.spelling == Spelling::Coloured { colour(obeyed) } else { 0 };
            let end =
                if colour > 0 { colour } else { obeyed.chars().next().map_or(0, char::len_utf8) };
            let (obeyed, after) = obeyed.split_at(end);
            match obeyed.chars().next() {
                Some(c) if colour == 0 => self.spell(c)?,
                _ => self.inner.write_all(obeyed.as_bytes())?,
            }
            rest = after;
        }
        self.inner.write_all(rest.as_bytes())
    }

    fn spell(&mut self, c: char) -> io::Result<()> {
        if self.spelling != Spelling::Json {
            return write!(self.inner, "{}", c.escape_unicode());
        }
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(self.inner, "\\u{unit:04x}"))
    }
}

/// The length of a colour sequence at the start of a text; 0 if there is none.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = parameters.find(|c: char| !c.is_ascii_digit() && c != ';');
    digits.filter(|end| parameters[*end..].starts_with('m')).map_or(0, |end| end + 3)
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.incomplete);
        all.extend_from_slice(bytes);
        for chunk in all.utf8_chunks() {
            self.show(chunk.valid())?;
            let is_last = std::ptr::eq(chunk.invalid().as_ptr_range().end, all.as_ptr_range().end);
            let is_cut = std::str::from_utf8(chunk.invalid())
                .is_err_and(|error| is_last && error.error_len().is_none());
            if is_cut {
                self.incomplete = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.show("\u{fffd}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shown(spelling: Spelling, pieces: &[&[u8]]) -> String {
        let mut writer = EscapingWriter::new(Vec::new(), spelling);
        pieces.iter().for_each(|piece| writer.write_all(piece).unwrap());
        String::from_utf8(writer.inner).unwrap()
    }

    #[test]
    fn what_a_terminal_obeys_is_spelled_out() {
        let text = "a\u{1b}[31mb\u{202e}ö\tc\n".as_bytes();
        assert_eq!(shown(Spelling::Text, &[text]), "a\\u{1b}[31mb\\u{202e}ö\tc\n");
        assert_eq!(shown(Spelling::Json, &[text]), "a\\u001b[31mb\\u202eö\tc\n");
        assert_eq!(shown(Spelling::Coloured, &[text]), "a\u{1b}[31mb\\u{202e}ö\tc\n");
        let moves = "\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[31".as_bytes();
        assert_eq!(
            shown(Spelling::Coloured, &[moves]),
            "\u{1b}[1;31mred\u{1b}[0m \\u{1b}[2J\\u{1b}]0;title\\u{7}\\u{1b}[31"
        );
    }

    #[test]
    fn json_reads_what_was_written() {
        let name = "\u{7f}\u{9b}31m\u{202e}\u{e0041}";
        let text = serde_json::to_string(name).unwrap();
        let safe = shown(Spelling::Json, &[text.as_bytes()]);
        assert!(safe.is_ascii(), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), name);
    }

    #[test]
    fn characters_may_come_in_pieces() {
        let text = "ö\u{202e}€".as_bytes();
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(shown(Spelling::Text, &bytes), "ö\\u{202e}€");
        assert_eq!(shown(Spelling::Text, &[b"a\xff\xc3", b"b"]), "a\u{fffd}\u{fffd}b");
    }

    /// Files that write machine formats or their own escape sequences.
    const EXEMPT: [&str; 6] =
        ["terminal.rs", "main.rs", "lsp.rs", "man.rs", "completions.rs", "top.rs"];

    /// Unfiltered ways to print.
    const WAYS: [&str; 7] = [
        "io::stdout().lock()",
        "io::stdout().write",
        "io::stdout(), ",
        "io::stderr().lock()",
        "io::stderr(), ",
        "std::print",
        "std::eprint",
    ];

    #[test]
    fn nothing_is_printed_past_this_file() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if !EXEMPT.contains(&name.as_str()) {
                    let text = std::fs::read_to_string(&path).unwrap();
                    for way in WAYS {
                        assert!(!text.contains(way), "{}: `{way}`", path.display());
                    }
                }
            }
        }
    }
}
