//! [`SqliteStore`]: records in one file that several processes share.

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
    /// Opens a file of records; makes it, and its directory, if there is none.
    ///
    /// # Errors
    /// If the file cannot be opened, is something else, is damaged or comes from a newer version.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self> {
        let db = Sqlite::open(path, &options)?;
        // Who the file belongs to is asked before anything about it is changed.
        let version = version(&db)?;
        let synchronous = if options.durable { "FULL" } else { "NORMAL" };
        // SQLite does not wait for others when it changes the mode of a file.
        db.patiently(|| db.batch("PRAGMA journal_mode = WAL"))?;
        // Only `collect` removes rows, and it removes none that others refer to.
        db.batch(&format!("PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = OFF"))?;
        if let Some(bytes) = options.max_bytes {
            let page: i64 = db.one("PRAGMA page_size", &[], |row| row.get(0))?.unwrap_or(4096);
            let pages = bytes / page.max(1).cast_unsigned();
            db.batch(&format!("PRAGMA max_page_count = {}", pages.max(1)))?;
        }
        match version {
            None => create(&db)?,
            Some(version) if version < schema::VERSION => match migrate(&db) {
                // An older file that cannot be written is read as it is.
                Err(Error::ReadOnly { .. } | Error::Full { .. }) => {}
                result => result?,
            },
            Some(_) => {}
        }
        Self::as_it_is(db)
    }

    /// Opens a file of records to look at, where neither it nor anything beside it can be written.
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
