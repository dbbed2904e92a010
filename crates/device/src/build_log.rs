//! [`BuildLog`]: compiler messages and their locations.

use std::fmt;

/// The messages of a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildLog {
    text: String,
    first_error: Option<BuildLine>,
}

/// A source line with a compile error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildLine {
    /// The number of the line, from one.
    pub line: usize,
    /// The line.
    pub source: String,
    /// The error message.
    pub message: String,
}

impl BuildLog {
    /// The compiler messages for a source text. Compilers write locations as `name:line:column:
    /// error:` (PoCL, Intel, NVIDIA's OpenCL) or `name(line): error:` (NVRTC).
    #[must_use]
    pub fn new(text: impl Into<String>, source: &str) -> Self {
        let text = text.into();
        let first_error = text.lines().find_map(|line| read(line, source));
        Self { text, first_error }
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.trim_end()
    }

    /// The first line with an error, if it can be determined.
    #[must_use]
    pub fn first_error(&self) -> Option<&BuildLine> {
        self.first_error.as_ref()
    }
}

/// The location and message of a log line that reports an error.
fn read(line: &str, source: &str) -> Option<BuildLine> {
    // PoCL writes the word before the location, others after it.
    let (place, message) = match line.strip_prefix("error: ") {
        Some(rest) => rest.split_once(": ")?,
        None => line.split_once("error: ")?,
    };
    let place = place.trim_end().trim_end_matches(" fatal").trim_end_matches(':').trim_end();
    let number = match place.strip_suffix(')').and_then(|place| place.rsplit_once('(')) {
        Some((_, number)) => number.parse().ok()?,
        None => {
            let mut parts = place.rsplit(':');
            let (_column, line) = (parts.next()?.parse::<usize>().ok()?, parts.next()?);
            line.parse().ok()?
        }
    };
    let shown = source.lines().nth(usize::checked_sub(number, 1)?)?;
    Some(BuildLine { line: number, source: shown.trim().to_owned(), message: message.to_owned() })
}

impl fmt::Display for BuildLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_all_compilers_are_read() {
        let source = "kernel void f() {\n  int a = b;\n}";
        for log in [
            "error: /tmp/cache/x.cl:2:11: use of undeclared identifier 'b'\n",
            "1 warning\n1:2:11: error: use of undeclared identifier 'b'\n  int a = b;\n",
            "<kernel>:2:11: error: use of undeclared identifier 'b'",
            "text.cu(2): error: use of undeclared identifier 'b'",
        ] {
            let log = BuildLog::new(log, source);
            let error = log.first_error().unwrap_or_else(|| panic!("{log}"));
            assert_eq!((error.line, error.source.as_str()), (2, "int a = b;"), "{log}");
            assert_eq!(error.message, "use of undeclared identifier 'b'", "{log}");
        }
        for log in ["", "error: ", "error: x", "a(99): error: y", "error: 1:0:0: z", "error:\u{0}"]
        {
            assert_eq!(BuildLog::new(log, source).first_error(), None, "{log}");
        }
    }
}
