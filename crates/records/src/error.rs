//! [`Error`]: what can go wrong with records, where, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::model::{RunId, TrialId};

/// The result of a question to records.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. `Display` says where and what, [`Error::help`] what to do.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Another process kept the database locked for too long.
    Busy {
        /// The database.
        path: PathBuf,
        /// How long we waited.
        waited: Duration,
        /// Processes that hold locks, if the system says: `4242 (sqlite3)`.
        holders: Vec<String>,
    },
    /// No space is left, or the limit of the database is reached.
    Full {
        /// The database.
        path: PathBuf,
    },
    /// The file is something else.
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database of another program.
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// The file is damaged.
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The database was made by a newer version.
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema's version.
        found: i64,
        /// The version that we know.
        known: i64,
    },
    /// The file cannot be opened or made.
    CannotOpen {
        /// The database.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file or its directory cannot be written to.
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// A file beside the database cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Anything else that SQLite says.
    Database {
        /// The database.
        path: PathBuf,
        /// What it says.
        detail: String,
    },
    /// Something that records do not keep.
    Invalid {
        /// What it is.
        what: String,
        /// Why it is refused.
        reason: String,
    },
    /// There is no such run.
    UnknownRun(RunId),
    /// There is no such trial.
    UnknownTrial(TrialId),
    /// The number of a trial is taken by another one.
    Taken(TrialId),
    /// There is a best that a declaration does not name as the one it replaces.
    Outrun(TrialId),
    /// Neither a path nor a home directory is known.
    NoDataDirectory,
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Busy { .. } => "wait until the other process is done, or stop it; nothing was \
                 changed and the same command may be repeated"
                .into(),
            Self::Full { path } => format!(
                "make room on the disk of {}, or remove old records: tensorwright db gc",
                directory(path).display()
            ),
            Self::NotADatabase { .. } | Self::Foreign { .. } => {
                "name another file with --db or TENSORWRIGHT_DB; this one was left as it is".into()
            }
            Self::Corrupt { path, .. } => format!(
                "move it aside and start anew: mv {0} {0}.damaged; `sqlite3 {0}.damaged .recover` \
                 saves what can be read",
                path.display()
            ),
            Self::Newer { .. } => {
                "use the newer tensorwright, or name another file with --db or TENSORWRIGHT_DB"
                    .into()
            }
            Self::CannotOpen { path, .. } | Self::ReadOnly { path } => format!(
                "check that {} exists and may be written to, or name another file with --db or \
                 TENSORWRIGHT_DB",
                directory(path).display()
            ),
            Self::File { .. } => "check that the file may be read and written".into(),
            Self::Database { .. } => "repeat the command; if that does not help, try another \
                 file with --db"
                .into(),
            Self::Invalid { .. } => "correct the record, or leave it out".into(),
            Self::UnknownRun(_) => "tensorwright db ls --runs lists the runs".into(),
            Self::UnknownTrial(_) => "tensorwright db show RUN lists the trials of a run".into(),
            Self::Taken(_) => "two runs have written under one name; report this".into(),
            Self::Outrun(_) => "tune again: the two are then measured beside each other".into(),
            Self::NoDataDirectory => "name a file with --db or TENSORWRIGHT_DB, or set HOME".into(),
        }
    }

    /// Whether the same records may be accepted later: the fault is not theirs.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        !matches!(
            self,
            Self::Invalid { .. }
                | Self::UnknownRun(_)
                | Self::UnknownTrial(_)
                | Self::Taken(_)
                | Self::Outrun(_)
        )
    }

    pub(crate) fn invalid(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), reason: reason.into() }
    }

    pub(crate) fn corrupt(path: &Path, detail: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), detail: detail.into() }
    }

    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::File { path: path.to_owned(), reason: error.to_string() }
    }

    /// What SQLite says, about a database.
    pub(crate) fn sqlite(path: &Path, waited: Duration, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let holders = crate::sqlite::holders(&path);
                Self::Busy { path, waited, holders }
            }
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::CannotOpen { path, reason: detail }
            }
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            // A page that the file is too short for is reported as a failed read.
            Some(ErrorCode::SystemIoFailure) if is_short_read(error) => {
                Self::Corrupt { path, detail: "the file ends too early".into() }
            }
            _ => Self::Database { path, detail },
        }
    }
}

fn is_short_read(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}

/// The directory of a file, `.` for a bare name.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { path, waited, holders } => {
                let seconds = waited.as_secs_f64();
                write!(f, "{} was locked for more than {seconds} s", path.display())?;
                match holders.as_slice() {
                    [] => f.write_str(" by another process"),
                    [one] => write!(f, " by process {one}"),
                    many => write!(f, " by one of the processes {}", many.join(", ")),
                }
            }
            Self::Full { path } => write!(f, "no space is left to write {}", path.display()),
            Self::NotADatabase { path } => {
                write!(f, "{} is not a database of records", path.display())
            }
            Self::Foreign { path } => {
                write!(f, "{} is a database of another program", path.display())
            }
            Self::Corrupt { path, detail } => {
                write!(f, "{} is damaged: {detail}", path.display())
            }
            Self::Newer { path, found, known } => write!(
                f,
                "{} was made by a newer version (schema {found}, this one knows {known})",
                path.display()
            ),
            Self::CannotOpen { path, reason } => {
                write!(f, "{} cannot be opened: {reason}", path.display())
            }
            Self::ReadOnly { path } => write!(f, "{} cannot be written to", path.display()),
            Self::File { path, reason } => {
                write!(f, "{} cannot be used: {reason}", path.display())
            }
            Self::Database { path, detail } => write!(f, "{}: {detail}", path.display()),
            Self::Invalid { what, reason } => write!(f, "{what} {reason}"),
            Self::UnknownRun(run) => write!(f, "there is no run {run}"),
            Self::UnknownTrial(trial) => write!(f, "there is no {trial}"),
            Self::Taken(trial) => write!(f, "there is another {trial} already"),
            Self::Outrun(best) => write!(
                f,
                "{best} is the best, and was not measured beside this one: only what is faster in the \
                 same comparison replaces a best"
            ),
            Self::NoDataDirectory => f.write_str("there is no place for records"),
        }
    }
}

impl std::error::Error for Error {}
