//! Where records are kept.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The variable that names another file of records.
const VARIABLE: &str = "TENSORWRIGHT_DB";

/// The given path, or the one in `TENSORWRIGHT_DB`, or [`default_path`].
///
/// # Errors
/// If none of them is known.
pub fn location(path: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = path {
        return Ok(path.to_owned());
    }
    let named = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    named.map(PathBuf::from).or_else(default_path).ok_or(Error::NoDataDirectory)
}

/// `tensorwright/records.sqlite3` in the user's data directory: `XDG_DATA_HOME`, or `.local/share`
/// in the home directory.
#[must_use]
pub fn default_path() -> Option<PathBuf> {
    // The XDG specification: a relative path is invalid and has to be ignored.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("share")))?;
    Some(data.join("tensorwright").join("records.sqlite3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_path_counts_first() {
        assert_eq!(location(Some(Path::new("x.db"))).unwrap(), Path::new("x.db"));
    }
}
