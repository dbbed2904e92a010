//! [`Sqlite`]: an SQLite file whose errors name it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};

use crate::error::{Error, Result};
use crate::location::Location;
use crate::sql::database::DatabaseExt as _;
use crate::sql::row::{Cell, Mismatch, Read, Row, Value, values};
use crate::sql::{Access, Database};
use crate::store_options::StoreOptions;

/// The most prepared statements to keep.
const STATEMENTS: usize = 64;

/// Rejects existing paths that are not files: SQLite would wait forever for a pipe.
fn refuse_special(path: &Path) -> std::result::Result<(), String> {
    match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => Err("it is a directory".to_owned()),
        Ok(about) if !about.is_file() => Err("it is a pipe or a device, not a file".to_owned()),
        _ => Ok(()),
    }
}

/// An SQLite file.
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    location: Location,
    patience: Duration,
}

impl Sqlite {
    /// Opens or creates a file. Nothing is read or written yet.
    pub(crate) fn open(path: &Path, options: &StoreOptions) -> Result<Self> {
        let cannot = |reason: String| Error::CannotOpen { at: path.into(), reason };
        if let Some(directory) = path.parent().filter(|parent| *parent != Path::new("")) {
            std::fs::create_dir_all(directory).map_err(|error| cannot(error.to_string()))?;
        }
        refuse_special(path).map_err(cannot)?;
        // No `SQLITE_OPEN_URI`: a path is a path, whatever characters it has.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| Error::sqlite(path, options.busy_timeout, &error);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(options.busy_timeout).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Self::on(connection, path, options))
    }

    /// Opens a file in an unwritable directory; otherwise SQLite's log needs files of its own.
    pub(crate) fn open_read_only(path: &Path, options: &StoreOptions) -> Result<Self> {
        let cannot = |reason: String| Error::CannotOpen { at: path.into(), reason };
        refuse_special(path).map_err(cannot)?;
        let whole = path.canonicalize().map_err(|error| cannot(error.to_string()))?;
        let whole =
            whole.to_str().ok_or_else(|| cannot("its path is not valid text".to_owned()))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| Error::sqlite(path, options.busy_timeout, &error);
        let name = format!("file:{}?immutable=1", in_uri(whole));
        let connection = Connection::open_with_flags(name, flags).map_err(failed)?;
        Ok(Self::on(connection, path, options))
    }

    fn on(connection: Connection, path: &Path, options: &StoreOptions) -> Self {
        let (location, path) = (path.into(), path.to_owned());
        Self { connection, path, location, patience: options.busy_timeout }
    }

    /// Retries work while SQLite is busy, until the timeout: for the few statements that SQLite
    /// refuses at once instead of waiting.
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

    fn failed(&self, error: &rusqlite::Error) -> Error {
        Error::sqlite(&self.path, self.patience, error)
    }
}

impl Database for Sqlite {
    /// Writers wait for others before they begin.
    const ATTEMPTS: u32 = 1;

    /// Nobody else writes during a transaction.
    const FOR_UPDATE: &'static str = "";

    fn location(&self) -> &Location {
        &self.location
    }

    fn words(&self, sql: &str) -> String {
        sql.to_owned()
    }

    fn tables(&self) -> Result<(u64, bool)> {
        let sql = "SELECT count(*), sum(name = 'meta') FROM sqlite_master WHERE type = 'table'";
        let read = |row: &Row| Ok((row.get::<i64>(0)?, row.get::<Option<i64>>(1)?));
        let (tables, meta) = self.one(sql, &[], read)?.unwrap_or_default();
        Ok((tables.cast_unsigned(), meta == Some(1)))
    }

    fn batch(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|error| self.failed(&error))
    }

    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64> {
        let run = || self.connection.prepare_cached(sql)?.execute(params_from_iter(values));
        run().map(|rows| rows as u64).map_err(|error| self.failed(&error))
    }

    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut dyn FnMut(&Row) -> Read<bool>,
    ) -> Result<()> {
        let mut mismatch = None;
        let mut run = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let columns = statement.column_count();
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                let cells = (0..columns).map(|at| row.get_ref(at).map(cell));
                match visit(&Row(cells.collect::<rusqlite::Result<_>>()?)) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(reason) => {
                        mismatch = Some(reason);
                        break;
                    }
                }
            }
            Ok(())
        };
        run().map_err(|error| self.failed(&error))?;
        mismatch.map_or(Ok(()), |reason: Mismatch| Err(self.corrupt(reason.to_string())))
    }

    fn begin(&self, _: Access) -> Result<()> {
        self.batch("BEGIN IMMEDIATE")
    }

    fn commit(&self) -> Result<()> {
        self.batch("COMMIT")
    }

    fn roll_back(&self) -> Result<()> {
        // SQLite has rolled back already if it had to.
        if self.connection.is_autocommit() { Ok(()) } else { self.batch("ROLLBACK") }
    }

    fn texts_of_others(&self) -> Result<Vec<i64>> {
        Ok(Vec::new())
    }

    fn bytes(&self) -> Result<u64> {
        let pragma = |sql: &str| -> Result<u64> {
            Ok(self.one(sql, &[], |row| row.get::<i64>(0))?.unwrap_or(0).cast_unsigned())
        };
        Ok(pragma("PRAGMA page_count")?.saturating_mul(pragma("PRAGMA page_size")?))
    }

    fn give_back(&self) -> Result<()> {
        self.batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn plan(&self, sql: &str) -> Result<String> {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let steps: Vec<String> = self.all(&sql, values![1_i64, 1_i64], |row| row.get(3))?;
        Ok(steps.join("\n"))
    }

    fn set_patience(&mut self, patience: Duration) -> Result<()> {
        self.patience = patience;
        self.connection.busy_timeout(patience).map_err(|error| self.failed(&error))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(value),
            Self::Real(value) => ValueRef::Real(value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

/// Converts a column. A text with invalid UTF-8 becomes bytes, which are an error where text is
/// expected.
fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(text) => match str::from_utf8(text) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => Cell::Bytes(text.to_owned()),
        },
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_owned()),
    }
}

/// Percent-encodes a path for a URI.
fn in_uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    path.bytes().map(one).collect()
}
