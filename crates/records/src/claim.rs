//! [`Claim`]: a lock on a run for the life of a process.
//!
//! The rows of a run without an end do not show whether it is still running or was killed. So the
//! process of a run locks a file beside the database, `records.sqlite3.runs/9c….lock`. The system
//! releases the lock when the process ends, however it ends. A run whose file exists without a lock
//! is unfinished, and a process that takes the lock can resume it. A run without a file is finished
//! or belongs to another machine: it is never resumed.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use crate::model::RunId;

/// The claims of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    directory: PathBuf,
}

/// A run owned by this process. Dropping it leaves the run unfinished.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Claims {
    /// The claims in a directory beside a database.
    pub(crate) fn of(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Claims a new run. `None` if the file cannot be created: then nobody can resume the run, but
    /// nothing else changes.
    #[must_use]
    pub fn begin(&self, run: &RunId) -> Option<Claim> {
        fs::create_dir_all(&self.directory).ok()?;
        let mut options = OpenOptions::new();
        Self::locked(self.path(run)?, options.write(true).create_new(true))
    }

    /// Claims a run whose process is gone. `None` if that process is alive, or the run was never
    /// claimed here.
    #[must_use]
    pub fn take_over(&self, run: &RunId) -> Option<Claim> {
        Self::locked(self.path(run)?, OpenOptions::new().write(true))
    }

    fn locked(path: PathBuf, options: &OpenOptions) -> Option<Claim> {
        let file = options.open(&path).ok()?;
        file.try_lock().ok()?;
        Some(Claim { path, _file: file })
    }

    /// The file of a run, if its name can be a file name.
    fn path(&self, run: &RunId) -> Option<PathBuf> {
        let name = run.as_str();
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (plain && !name.is_empty()).then(|| self.directory.join(format!("{name}.lock")))
    }
}

impl Claim {
    /// Marks the run as finished: nobody will resume it.
    pub fn finish(self) {
        // If the file stays, the process that takes its lock finds that the run is finished.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_belongs_to_one_until_it_is_left_or_finished() {
        let directory = tempfile::tempdir().unwrap();
        let claims = Claims::of(directory.path().join("records.sqlite3.runs"));
        let run = RunId::fresh();
        assert!(claims.take_over(&run).is_none(), "never claimed");
        let claim = claims.begin(&run).unwrap();
        assert!(claims.take_over(&run).is_none(), "alive");
        assert!(claims.begin(&run).is_none(), "begins once");
        drop(claim);
        let claim = claims.take_over(&run).expect("left unfinished");
        assert!(claims.take_over(&run).is_none(), "alive again");
        claim.finish();
        assert!(claims.take_over(&run).is_none(), "finished");
        assert!(claims.begin(&RunId::named("../evil")).is_none());
    }
}
