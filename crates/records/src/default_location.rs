//! The default location of records and of their files.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::location::Location;

/// The environment variable with the location of records.
const VARIABLE: &str = "TENSORWRIGHT_DB";

/// The configured location, used instead of [`default_path`].
static CONFIGURED: OnceLock<Location> = OnceLock::new();

/// Sets the default location for this process, used if neither a caller nor `TENSORWRIGHT_DB` names
/// one. Only the first call counts.
pub fn set_default_location(place: Location) {
    // The records may already be open at the first location.
    let _ = CONFIGURED.set(place);
}

impl Location {
    /// The given place, or the one in `TENSORWRIGHT_DB`, or that of [`set_default_location`], or [`default_path`].
    ///
    /// # Errors
    /// If none of them is known.
    pub fn given(place: Option<&Self>) -> Result<Self> {
        if let Some(place) = place {
            return Ok(place.clone());
        }
        let named = env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let named = named.map(Self::from).or_else(|| CONFIGURED.get().cloned());
        let named = named.or_else(|| default_path().map(Self::File));
        named.ok_or(Error::NoDataDirectory)
    }

    /// The base path of the records' files on this machine: their own file, or for a server a path
    /// in the user's data directory.
    ///
    /// # Errors
    /// If there is no such directory.
    pub(crate) fn beside(&self) -> Result<PathBuf> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Server(url) => {
                let directory = default_path().ok_or(Error::NoDataDirectory)?;
                // Servers never share a file, nor do two users of one server.
                let digest = Sha256::digest(url.to_string().as_bytes());
                let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                Ok(directory.with_file_name("servers").join(name))
            }
        }
    }
}

/// `tensorwright/records.sqlite3` in the user's data directory: `XDG_DATA_HOME`, or `.local/share`
/// in the home directory.
#[must_use]
pub fn default_path() -> Option<PathBuf> {
    // The XDG specification says to ignore relative paths.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("share")))?;
    Some(data.join("tensorwright").join("records.sqlite3"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_given_place_counts_first() {
        let place = Location::from(Path::new("x.db"));
        assert_eq!(Location::given(Some(&place)).unwrap(), place);
    }
}
