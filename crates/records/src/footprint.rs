//! [`Footprint`]: the files of records on this machine, with sizes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::location::Location;

/// A file or folder that belongs to records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptFile {
    /// Its contents, for users.
    pub what: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes, including contents.
    pub bytes: u64,
}

impl KeptFile {
    /// A file or folder with its description and size.
    #[must_use]
    pub fn new(what: &'static str, path: PathBuf, bytes: u64) -> Self {
        Self { what, path, bytes }
    }
}

/// The existing files of records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// The files and folders, the records themselves first.
    pub parts: Vec<KeptFile>,
    /// Whether a process works on a run of these records.
    pub is_in_use: bool,
}

/// Suffixes of files beside a database, with descriptions.
const BESIDE: [(&str, &str); 7] = [
    ("", "records"),
    ("-wal", "write-ahead log"),
    ("-shm", "shared memory of processes"),
    (".runs", "unfinished runs"),
    (".cases", "compiler defects"),
    (".pending.jsonl", "records waiting to be written"),
    (".rejected.jsonl", "refused records"),
];

impl Footprint {
    /// Finds the files. For records on a server, only those on this machine.
    ///
    /// # Errors
    /// If there is no place for records.
    pub fn of(place: &Location) -> Result<Self> {
        let path = place.beside()?;
        let part = |(end, what): (&str, &'static str)| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            let path = PathBuf::from(name);
            let bytes = size(&path)?;
            Some(KeptFile { what, path, bytes })
        };
        let parts: Vec<KeptFile> = BESIDE.into_iter().filter_map(part).collect();
        let runs = parts.iter().find(|part| part.what == BESIDE[3].1);
        let is_in_use = runs.is_some_and(|runs| any_locked(&runs.path));
        Ok(Self { parts, is_in_use })
    }

    /// The size of all parts in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Removes all parts for good.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn remove(&self) -> Result<()> {
        for KeptFile { path, .. } in &self.parts {
            let removed =
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file(path, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The size of a file, or of all files in a folder; `None` if there is neither. Links are not
/// followed.
fn size(path: &Path) -> Option<u64> {
    let about = fs::symlink_metadata(path).ok()?;
    if !about.is_dir() {
        return Some(about.len());
    }
    let entries = fs::read_dir(path).ok()?;
    Some(entries.flatten().filter_map(|entry| size(&entry.path())).sum())
}

/// Whether a file of a folder is locked by a process.
fn any_locked(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let file = fs::OpenOptions::new().write(true).open(entry.path());
        file.is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_belongs_to_records_is_counted_and_removed_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("r.db"), [0; 100]).unwrap();
        fs::write(at("r.db-wal"), [0; 10]).unwrap();
        fs::write(at("r.db.other"), [0; 1000]).unwrap();
        fs::create_dir(at("r.db.runs")).unwrap();
        let lock = fs::File::create(at("r.db.runs/1.lock")).unwrap();
        let place = Location::from(at("r.db").as_path());
        let found = Footprint::of(&place).unwrap();
        assert_eq!((found.bytes(), found.parts.len(), found.is_in_use), (110, 3, false));
        lock.lock().unwrap();
        let found = Footprint::of(&place).unwrap();
        assert!(found.is_in_use);
        drop(lock);
        found.remove().unwrap();
        assert_eq!(Footprint::of(&place).unwrap().parts, []);
        assert!(at("r.db.other").exists());
    }
}
