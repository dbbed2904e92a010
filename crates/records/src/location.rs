//! [`Location`]: the file or server of records.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The schemes of server URLs.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The file or server of records.
///
/// A text that starts like a PostgreSQL URL is one; all others are paths. Opening it checks it.
/// Passwords are never shown.
///
/// ```
/// use tensorwright_records::Location;
///
/// let server: Location = "postgres://ann:secret@db.example:5432/tuning".parse()?;
/// assert_eq!(server.to_string(), "postgres://ann:***@db.example:5432/tuning");
/// assert!(matches!("records.sqlite3".parse()?, Location::File(_)));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Server(Url),
}

/// The URL of a server. Its password is never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url(String);

impl Url {
    /// The text as given, including secrets.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "no server is ever asked"))]
    pub(crate) fn secret_text(&self) -> &str {
        &self.0
    }

    /// The ranges of passwords in the text.
    fn passwords(&self) -> Vec<Range<usize>> {
        let begin = self.0.find("://").map_or(0, |at| at + 3);
        let end = self.0[begin..].find(['/', '?']).map_or(self.0.len(), |at| begin + at);
        // Also hide a password with an unescaped `/` or `?`, even if that hides more.
        let end = self.0[begin..].rfind('@').map_or(end, |at| end.max(begin + at));
        let mut hidden = Vec::new();
        if let Some(at) = self.0[begin..end.max(begin)].find(':').map(|at| begin + at + 1)
            && let Some(length) = self.0[at..].rfind('@')
        {
            hidden.push(at..at + length);
        }
        let from = hidden.last().map_or(begin, |range| range.end);
        let mut at = from;
        while let Some(found) = self.0[at..].find("password=") {
            let start = at + found + "password=".len();
            let length = self.0[start..].find('&').unwrap_or(self.0.len() - start);
            hidden.push(start..start + length);
            at = start + length;
        }
        hidden
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        for hidden in self.passwords() {
            write!(f, "{}***", &self.0[at..hidden.start])?;
            at = hidden.end;
        }
        f.write_str(&self.0[at..])
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(url) => url.fmt(f),
        }
    }
}

impl From<OsString> for Location {
    fn from(text: OsString) -> Self {
        match text.to_str() {
            Some(url) if SCHEMES.iter().any(|scheme| url.starts_with(scheme)) => {
                Self::Server(Url(url.to_owned()))
            }
            _ => Self::File(text.into()),
        }
    }
}

impl From<PathBuf> for Location {
    /// Always a path, whatever it starts with.
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<&Path> for Location {
    /// Always a path, whatever it starts with.
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl FromStr for Location {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(OsString::from(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let Ok(place) = text.parse::<Location>();
        assert!(!format!("{place:?}").contains("secret"), "{place:?}");
        place.to_string()
    }

    #[test]
    fn passwords_never_show() {
        let cases = [
            ("postgres://ann@h/d", "postgres://ann@h/d"),
            ("postgres://ann:secret@h:1/d?x=y", "postgres://ann:***@h:1/d?x=y"),
            ("postgres://ann:sec/ret?@h/d", "postgres://ann:***@h/d"),
            (
                "postgresql://h/d?user=a&password=secret&x=1",
                "postgresql://h/d?user=a&password=***&x=1",
            ),
            ("postgres://a:secret@h/d?sslpassword=secret", "postgres://a:***@h/d?sslpassword=***"),
            ("postgres://h:5432/d", "postgres://h:5432/d"),
            ("postgres://", "postgres://"),
            ("postgres://ü:secret", "postgres://ü:secret"),
        ];
        for (given, expected) in &cases[..7] {
            assert_eq!(shown(given), *expected);
        }
        // Without an `@`, a colon is followed by a port.
        let Ok(place) = cases[7].0.parse::<Location>();
        assert_eq!(place.to_string(), cases[7].1);
    }

    #[test]
    fn a_path_is_a_path_whatever_it_is_called() {
        for path in ["postgres:/x", "./postgres://x", "", "a b"] {
            let Ok(place) = path.parse::<Location>();
            assert_eq!(place, Location::File(path.into()));
        }
    }
}
