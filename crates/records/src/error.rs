//! [`Error`]: errors of records, with their place and help.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::location::Location;
use crate::model::{RunId, TrialId};

/// How to get a build that has a client for servers.
pub const FLEET_FEATURE: &str = "take a release archive or the container, or build with `cargo install tensorwright-cli --features fleet`";

/// The result of an operation on records.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of records. `Display` shows its place and cause, [`Error::help`] what to do.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Another process kept the database locked for too long.
    Busy {
        /// Where it is.
        at: Location,
        /// The time waited.
        waited: Duration,
        /// Processes that hold locks, if the system shows them: `4242 (sqlite3)`.
        holders: Vec<String>,
    },
    /// The disk is full, or the database has reached its limit.
    Full {
        /// Where it is.
        at: Location,
    },
    /// The file is not a database.
    NotADatabase {
        /// Where it is.
        at: Location,
    },
    /// The file is a database of another program.
    Foreign {
        /// Where it is.
        at: Location,
    },
    /// The file is damaged.
    Corrupt {
        /// Where it is.
        at: Location,
        /// What was found.
        detail: String,
    },
    /// The database was made by a newer version.
    Newer {
        /// Where it is.
        at: Location,
        /// Its schema's version.
        found: i64,
        /// The version that this build supports.
        known: i64,
    },
    /// The file cannot be opened or made.
    CannotOpen {
        /// Where it is.
        at: Location,
        /// Why.
        reason: String,
    },
    /// The file or its directory cannot be written to.
    ReadOnly {
        /// Where it is.
        at: Location,
    },
    /// A file beside the database cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The server cannot be reached, or the connection to it is lost.
    Unreachable {
        /// Where it is.
        at: Location,
        /// Why.
        reason: String,
    },
    /// The server denies this to the user.
    Denied {
        /// Where it is.
        at: Location,
        /// What it says.
        reason: String,
    },
    /// Repeated conflicts with other transactions.
    Conflict {
        /// Where it is.
        at: Location,
    },
    /// A URL of a server, or what it names, cannot be used.
    Url {
        /// Where it is.
        at: Location,
        /// Why.
        reason: String,
    },
    /// This build has no client for servers.
    NoServers {
        /// Where it is.
        at: Location,
    },
    /// Any other error of the database.
    Database {
        /// Where it is.
        at: Location,
        /// What it says.
        detail: String,
    },
    /// A value that records cannot store.
    Invalid {
        /// The name of the value.
        what: String,
        /// Why it is refused.
        reason: String,
    },
    /// There is no such run.
    UnknownRun(RunId),
    /// There is no such trial.
    UnknownTrial(TrialId),
    /// Another trial has this number.
    Taken(TrialId),
    /// The key has a best that the declaration does not replace.
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
            Self::Full { at } => {
                let disk = match at {
                    Location::File(path) => directory(path).display().to_string(),
                    Location::Server(_) => "the server".to_owned(),
                };
                format!(
                    "make room on the disk of {disk}, or remove old records: tensorwright db gc"
                )
            }
            Self::NotADatabase { .. } | Self::Foreign { at: Location::File(_) } => {
                "name another file with --db or TENSORWRIGHT_DB; this one was left as it is".into()
            }
            Self::Foreign { at: Location::Server(_) } => {
                "name another schema in the URL (schema=NAME); this one was left as it is".into()
            }
            Self::Corrupt { at: Location::File(path), .. } => format!(
                "move it aside and start anew: mv {0} {0}.damaged; `sqlite3 {0}.damaged .recover` \
                 saves what can be read",
                path.display()
            ),
            Self::Corrupt { at: Location::Server(_), .. } => {
                "somebody has changed these rows by hand: restore them from a backup".into()
            }
            Self::Newer { .. } => {
                "use the newer tensorwright, or name another file with --db or TENSORWRIGHT_DB"
                    .into()
            }
            Self::CannotOpen { at: Location::File(path), .. }
            | Self::ReadOnly { at: Location::File(path) } => format!(
                "check that {} exists and may be written to, or name another file with --db or \
                 TENSORWRIGHT_DB",
                directory(path).display()
            ),
            Self::CannotOpen { .. } | Self::ReadOnly { .. } => {
                "it may be a standby: add target_session_attrs=read-write to the URL, with all \
                 hosts that may be the primary"
                    .into()
            }
            Self::Unreachable { .. } => "check that the server runs and that its host, port and \
                 certificates are those of the URL; the same command may be repeated"
                .into(),
            Self::Denied { .. } => "check the user and the password (PGPASSWORD, PGPASSFILE), and \
                 ask whoever runs the server for the privilege"
                .into(),
            Self::Conflict { .. } => {
                "nothing was changed and the same command may be repeated".into()
            }
            Self::Url { .. } => "it has the form \
                 postgres://USER@HOST:PORT/DATABASE?sslrootcert=FILE; docs/records.md has all \
                 options"
                .into(),
            Self::NoServers { .. } => FLEET_FEATURE.into(),
            Self::File { .. } => "check that the file may be read and written".into(),
            Self::Database { .. } => "repeat the command; if that does not help, try another \
                 database with --db"
                .into(),
            Self::Invalid { .. } => "correct the record, or leave it out".into(),
            Self::UnknownRun(_) => "tensorwright db ls --runs lists the runs".into(),
            Self::UnknownTrial(_) => "tensorwright db show RUN lists the trials of a run".into(),
            Self::Taken(_) => "two runs have written under one name; report this".into(),
            Self::Outrun(_) => "tune again: the two are then measured beside each other".into(),
            Self::NoDataDirectory => "name a file with --db or TENSORWRIGHT_DB, or set HOME".into(),
        }
    }

    /// Whether the same records may be accepted later: they are not the cause.
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

    /// Whether waiting does not help: the user must name or repair the place.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::NotADatabase { .. }
                | Self::Foreign { .. }
                | Self::Corrupt { .. }
                | Self::Newer { .. }
                | Self::CannotOpen { .. }
                | Self::ReadOnly { .. }
                | Self::Url { .. }
                | Self::NoServers { .. }
                | Self::NoDataDirectory
        )
    }

    pub(crate) fn invalid(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), reason: reason.into() }
    }

    pub(crate) fn corrupt(at: &Location, detail: impl Into<String>) -> Self {
        Self::Corrupt { at: at.clone(), detail: detail.into() }
    }

    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::File { path: path.to_owned(), reason: error.to_string() }
    }

    /// Converts an error of SQLite.
    pub(crate) fn sqlite(path: &Path, waited: Duration, error: &rusqlite::Error) -> Self {
        let at = Location::from(path);
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let holders = crate::sqlite::holders(path);
                Self::Busy { at, waited, holders }
            }
            Some(ErrorCode::DiskFull) => Self::Full { at },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { at },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { at, detail },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::CannotOpen { at, reason: detail }
            }
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { at },
            // SQLite reports a page beyond the end of the file as a failed read.
            Some(ErrorCode::SystemIoFailure) if is_short_read(error) => {
                Self::Corrupt { at, detail: "the file ends too early".into() }
            }
            _ => Self::Database { at, detail },
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
            Self::Busy { at, waited, holders } => {
                let seconds = waited.as_secs_f64();
                write!(f, "{at} was locked for more than {seconds} s")?;
                match holders.as_slice() {
                    [] => f.write_str(" by another process"),
                    [one] => write!(f, " by process {one}"),
                    many => write!(f, " by one of the processes {}", many.join(", ")),
                }
            }
            Self::Full { at } => write!(f, "no space is left to write {at}"),
            Self::NotADatabase { at } => write!(f, "{at} is not a database of records"),
            Self::Foreign { at } => write!(f, "{at} is a database of another program"),
            Self::Corrupt { at, detail } => write!(f, "{at} is damaged: {detail}"),
            Self::Newer { at, found, known } => write!(
                f,
                "{at} was made by a newer version (schema {found}, this one knows {known})"
            ),
            Self::CannotOpen { at, reason } => write!(f, "{at} cannot be opened: {reason}"),
            Self::ReadOnly { at } => write!(f, "{at} cannot be written to"),
            Self::Unreachable { at, reason } => write!(f, "{at} cannot be reached: {reason}"),
            Self::Denied { at, reason } => write!(f, "{at} refuses that: {reason}"),
            Self::Conflict { at } => write!(f, "another process was in the way in {at}"),
            Self::Url { at, reason } => write!(f, "{at} cannot be used: {reason}"),
            Self::NoServers { at } => {
                write!(f, "{at} is a server, and this build has no client for servers")
            }
            Self::File { path, reason } => {
                write!(f, "{} cannot be used: {reason}", path.display())
            }
            Self::Database { at, detail } => write!(f, "{at}: {detail}"),
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
