//! [`LandscapeError`]: errors of making or decoding landscapes.

use std::fmt;

/// Why bytes or outcomes do not make a landscape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandscapeError {
    message: String,
}

impl LandscapeError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for LandscapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LandscapeError {}
