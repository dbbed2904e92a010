//! What a run has done, as a file for another process.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a run has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// How many indices were tried, from the first on.
    pub(crate) tried: u64,
    /// How many of them were not run, for reasons that are none of a failure.
    pub(crate) skipped: u64,
    /// What failed, made small.
    pub(crate) failures: Vec<Failure>,
    /// How many more look the same as one of those.
    pub(crate) repeated: u64,
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The index.
    pub(crate) index: u64,
    /// What happened, in a few words.
    pub(crate) title: String,
    /// The file that replays it, from the root of the workspace.
    pub(crate) file: String,
}

impl Summary {
    /// Writes the summary to a file, if one is wanted.
    pub(crate) fn write(&self, file: Option<&Path>) -> Result<(), String> {
        let Some(file) = file else { return Ok(()) };
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
    }
}
