//! [`Db`]: a connection whose errors say which file they are about.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Params, Row};

use super::Options;
use crate::error::{Error, Result};

/// Prepared statements that are kept.
const STATEMENTS: usize = 64;

/// A connection whose errors say which file they are about.
pub(crate) struct Db {
    connection: Connection,
    path: PathBuf,
    patience: Duration,
}

impl Db {
    /// Opens or makes a file. Nothing is read or written yet.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self> {
        let cannot = |reason: String| Error::CannotOpen { path: path.to_owned(), reason };
        if let Some(directory) = path.parent().filter(|parent| *parent != Path::new("")) {
            std::fs::create_dir_all(directory).map_err(|error| cannot(error.to_string()))?;
        }
        if path.is_dir() {
            return Err(cannot("it is a directory".to_owned()));
        }
        // No `SQLITE_OPEN_URI`: a path is a path, whatever characters it has.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| Error::sqlite(path, options.busy_timeout, &error);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(options.busy_timeout).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Self { connection, path: path.to_owned(), patience: options.busy_timeout })
    }

    /// Opens a file that cannot be written, nor anything beside it. SQLite's log needs files of its own
    /// otherwise.
    pub(crate) fn open_read_only(path: &Path, options: &Options) -> Result<Self> {
        let cannot = |reason: String| Error::CannotOpen { path: path.to_owned(), reason };
        let whole = path.canonicalize().map_err(|error| cannot(error.to_string()))?;
        let whole = whole.to_str().ok_or_else(|| cannot("its path is no text".to_owned()))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| Error::sqlite(path, options.busy_timeout, &error);
        let name = format!("file:{}?immutable=1", in_uri(whole));
        let connection = Connection::open_with_flags(name, flags).map_err(failed)?;
        Ok(Self { connection, path: path.to_owned(), patience: options.busy_timeout })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for other processes as long as this from now on.
    pub(crate) fn set_patience(&mut self, patience: Duration) -> Result<()> {
        self.patience = patience;
        self.connection.busy_timeout(patience).map_err(|error| self.failed(&error))
    }

    /// Runs statements that are not worth keeping, without parameters or results.
    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|error| self.failed(&error))
    }

    /// Runs a statement; the number of rows that it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        let run = || self.connection.prepare_cached(sql)?.execute(params);
        run().map_err(|error| self.failed(&error))
    }

    /// The first row of a query.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params)?;
            rows.next()?.map(read).transpose()
        };
        run().map_err(|error| self.failed(&error))
    }

    /// All rows of a query.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map(params, read)?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        };
        run().map_err(|error| self.failed(&error))
    }

    /// Does work in a transaction that no other writer interleaves with, and that is on disk when
    /// this returns.
    pub(crate) fn transaction<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begin()?;
        self.end(work())
    }

    /// Begins a transaction, which [`Db::end`] has to end.
    pub(crate) fn begin(&self) -> Result<()> {
        self.batch("BEGIN IMMEDIATE")
    }

    /// Commits what went well and takes back what did not.
    pub(crate) fn end<T>(&self, result: Result<T>) -> Result<T> {
        let result = result.and_then(|value| self.batch("COMMIT").map(|()| value));
        if result.is_err() && !self.connection.is_autocommit() {
            // The first error is the one to report; SQLite has rolled back already if it had to.
            let _ = self.batch("ROLLBACK");
        }
        result
    }

    /// Does work until it is not refused for being busy any more, or patience ends. For the few
    /// statements that SQLite refuses at once instead of waiting.
    pub(crate) fn patiently<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        loop {
            match work() {
                Err(Error::Busy { .. }) if start.elapsed() < self.patience => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    /// That the file holds something that this crate does not write.
    pub(crate) fn corrupt(&self, detail: impl Into<String>) -> Error {
        Error::corrupt(&self.path, detail)
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        Error::sqlite(&self.path, self.patience, error)
    }
}

/// A path as a URI has it: whatever could mean something else is a number.
fn in_uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    path.bytes().map(one).collect()
}
