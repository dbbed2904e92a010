//! [`Claim`]: a run belongs to the process that works on it, for as long as that lives.
//!
//! Whether a run that has not ended is still running or was killed cannot be told from its rows. So a
//! process that works on a run holds a lock on a file beside the database,
//! `records.sqlite3.runs/9c….lock`. The system releases the lock when the process ends, however it ends.
//! A run whose file is there and not locked was left unfinished, and whoever takes the lock may go on
//! with it. A run without a file was finished, or belongs to another machine: nobody goes on with it.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use crate::model::RunId;

/// Where the claims of a database are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    directory: PathBuf,
}

/// A run that is this process's alone. Dropping it leaves the run unfinished.
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

    /// Claims a run that begins. `None` if the file cannot be made: then nobody can go on with the run
    /// if it does not finish, and all else is as usual.
    #[must_use]
    pub fn begin(&self, run: &RunId) -> Option<Claim> {
        fs::create_dir_all(&self.directory).ok()?;
        let mut options = OpenOptions::new();
        Self::locked(self.path(run)?, options.write(true).create_new(true))
    }

    /// Claims a run that its process has left unfinished. `None` if that is alive, or the run was never
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

    /// The file of a run whose name can be one.
    fn path(&self, run: &RunId) -> Option<PathBuf> {
        let name = run.as_str();
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (plain && !name.is_empty()).then(|| self.directory.join(format!("{name}.lock")))
    }
}

impl Claim {
    /// The run is finished: nobody need go on with it.
    pub fn finish(self) {
        // A file that stays is found to be of a finished run by whoever takes its lock.
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
