//! The state file of a campaign.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The state of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// The seed.
    pub(super) seed: u64,
    /// The tested commits, newest last.
    pub(super) commits: Vec<String>,
    /// The line that the last known `.ci/run full` wrote; empty if none is known.
    #[serde(default)]
    pub(super) full: String,
    kinds: BTreeMap<String, Done>,
}

/// The progress of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Done {
    /// The first untried index.
    pub(super) next: u64,
    pub(super) tried: u64,
    pub(super) skipped: u64,
    pub(super) seconds: f64,
    /// How many failures repeat a kept one.
    pub(super) repeated: u64,
    pub(super) failures: Vec<KeptFailure>,
}

/// A kept failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptFailure {
    pub(super) index: u64,
    pub(super) title: String,
    /// The path from the workspace root; empty if there is no file.
    pub(super) file: String,
    /// Whether it failed when last tried.
    pub(super) is_open: bool,
}

impl State {
    /// A new campaign.
    pub(super) fn new(seed: u64, commit: String) -> Self {
        Self { seed, commits: vec![commit], full: String::new(), kinds: BTreeMap::new() }
    }

    /// Reads a file; `None` if there is none.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, String> {
        match std::fs::read_to_string(file) {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| format!("{} is no state: {error}", file.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }

    /// Writes the file atomically, because a campaign may be interrupted at any time.
    pub(super) fn write(&self, file: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        let new = file.with_extension("new");
        std::fs::write(&new, text).map_err(failed)?;
        std::fs::rename(&new, file).map_err(failed)
    }

    /// The progress of a kind.
    pub(super) fn done(&self, kind: &str) -> Done {
        self.kinds.get(kind).cloned().unwrap_or_default()
    }

    /// Adds a slice of a kind, whose `next` is the start of the following one.
    pub(super) fn add(&mut self, kind: &str, slice: &Done) {
        let done = self.kinds.entry(kind.to_owned()).or_default();
        done.next = slice.next;
        done.tried += slice.tried;
        done.skipped += slice.skipped;
        done.seconds += slice.seconds;
        done.repeated += slice.repeated;
        done.failures.extend(slice.failures.iter().cloned());
    }

    /// The failures of a kind.
    pub(super) fn failures_mut(&mut self, kind: &str) -> &mut [KeptFailure] {
        self.kinds.get_mut(kind).map_or(&mut [], |done| &mut done.failures)
    }

    /// The number of open failures.
    pub(super) fn open(&self) -> usize {
        self.kinds.values().flat_map(|done| &done.failures).filter(|known| known.is_open).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_add_up_over_sittings() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.json");
        assert_eq!(State::read(&file), Ok(None));
        let mut state = State::new(7, "abc".to_owned());
        let known =
            KeptFailure { index: 3, title: "llvm wrong".into(), file: "a".into(), is_open: true };
        let slice = Done {
            next: 8,
            tried: 8,
            skipped: 1,
            seconds: 0.5,
            repeated: 2,
            failures: vec![known],
        };
        state.add("space", &slice);
        state.write(&file).unwrap();
        let mut state = State::read(&file).unwrap().unwrap();
        state.add("space", &Done { next: 12, tried: 4, ..Done::default() });
        let done = state.done("space");
        assert_eq!((done.next, done.tried, done.skipped, done.failures.len()), (12, 12, 1, 1));
        assert_eq!((state.open(), state.seed), (1, 7));
        // Files of earlier versions know of no full run.
        std::fs::write(&file, r#"{"seed": 7, "commits": [], "kinds": {}}"#).unwrap();
        assert_eq!(State::read(&file).unwrap().unwrap().full, "");
        std::fs::write(&file, "{").unwrap();
        assert!(State::read(&file).unwrap_err().contains("is no state"));
    }
}
