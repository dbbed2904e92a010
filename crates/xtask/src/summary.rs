//! Summary files of a run, for other processes.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The summary of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The number of tried indices, from the first on.
    pub(crate) tried: u64,
    /// How many were skipped for legitimate reasons.
    pub(crate) skipped: u64,
    /// Minimised failures.
    pub(crate) failures: Vec<Failure>,
    /// How many further failures repeat one of those.
    pub(crate) repeated: u64,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The index.
    pub(crate) index: u64,
    /// A short description.
    pub(crate) title: String,
    /// The replay file, from the workspace root.
    pub(crate) file: String,
}

impl Summary {
    /// Writes the summary, if a file is given.
    pub(crate) fn write(&self, file: Option<&Path>) -> Result<(), String> {
        let Some(file) = file else { return Ok(()) };
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
    }
}
