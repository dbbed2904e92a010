//! [`SqliteStore`]: records in one SQLite file, shared by processes.

mod db;
mod holders;

use db::Sqlite;
pub(crate) use holders::holders;

use std::path::Path;

use crate::error::{Error, Result};
use crate::location::Location;
use crate::schema;
use crate::sql::database::DatabaseExt as _;
use crate::sql::{Database as _, SqlStore, create, migrate, version};
use crate::store_options::StoreOptions;

/// Records in one SQLite file.
pub type SqliteStore = SqlStore<Sqlite>;

impl SqliteStore {
    /// Opens a file of records; creates it and its directory if missing.
    ///
    /// # Errors
    /// If the file cannot be opened, is something else, is damaged or comes from a newer version.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self> {
        let db = Sqlite::open(path, &options)?;
        // Check the owner of the file before changing anything.
        let version = version(&db)?;
        let synchronous = if options.durable { "FULL" } else { "NORMAL" };
        // SQLite does not wait for locks when it changes the journal mode.
        db.patiently(|| db.batch("PRAGMA journal_mode = WAL"))?;
        // Only `collect` removes rows, and only those without references.
        db.batch(&format!("PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = OFF"))?;
        if let Some(bytes) = options.max_bytes {
            let page: i64 = db.one("PRAGMA page_size", &[], |row| row.get(0))?.unwrap_or(4096);
            let pages = bytes / page.max(1).cast_unsigned();
            db.batch(&format!("PRAGMA max_page_count = {}", pages.max(1)))?;
        }
        match version {
            None => create(&db)?,
            Some(version) if version < schema::VERSION => match migrate(&db) {
                // An unwritable older file is read as it is.
                Err(Error::ReadOnly { .. } | Error::Full { .. }) => {}
                result => result?,
            },
            Some(_) => {}
        }
        Self::as_it_is(db)
    }

    /// Opens a file of records read-only, where neither it nor its directory is writable.
    ///
    /// # Errors
    /// If the file cannot be opened, is something else, is damaged or comes from a newer version.
    pub fn open_read_only(path: &Path, options: &StoreOptions) -> Result<Self> {
        let db = Sqlite::open_read_only(path, options)?;
        match version(&db)? {
            Some(_) => Self::as_it_is(db),
            None => Err(Error::NotADatabase { at: Location::from(path) }),
        }
    }

    fn as_it_is(db: Sqlite) -> Result<Self> {
        let version = version(&db)?.unwrap_or(schema::VERSION);
        let is_older = version < schema::VERSION;
        if is_older {
            db.batch("PRAGMA temp_store = MEMORY")?;
            schema::views(version).iter().try_for_each(|sql| db.batch(sql))?;
        }
        Ok(Self::on(db, is_older))
    }
}
