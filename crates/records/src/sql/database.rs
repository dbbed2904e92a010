//! [`Database`]: the interface of a database connection, with all differences between databases.

use std::time::Duration;

use super::row::{Read, Row, Value};
use crate::error::{Error, Result};
use crate::location::Location;

/// Concurrent writers that a transaction permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Others that only add. SQLite never permits a second writer.
    Adding,
    /// None: this transaction removes rows whose numbers others cache.
    Removing,
    /// None that create tables: there are none yet.
    Making,
}

/// A connection to a database. Parameters of statements are `$1` and so on, and first appear in
/// this order.
pub trait Database {
    /// How often to retry a transaction after conflicts.
    const ATTEMPTS: u32;

    /// The suffix of a query that locks its row until the transaction ends.
    const FOR_UPDATE: &'static str;

    /// Where it is.
    fn location(&self) -> &Location;

    /// Translates a `CREATE TABLE` statement of [`crate::schema`] from SQLite's SQL.
    fn words(&self, sql: &str) -> String;

    /// The number of tables in the place of records, and whether one of them is `meta`.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn tables(&self) -> Result<(u64, bool)>;

    /// Runs statements once, without parameters or results.
    ///
    /// # Errors
    /// If the database reports an error.
    fn batch(&self, sql: &str) -> Result<()>;

    /// Runs a statement; returns the number of changed rows.
    ///
    /// # Errors
    /// If the database reports an error.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64>;

    /// Calls a function with each row of a query, until it returns that this is enough.
    ///
    /// # Errors
    /// If the database reports an error, or the function cannot read a row.
    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut dyn FnMut(&Row) -> Read<bool>,
    ) -> Result<()>;

    /// Begins a transaction; [`Database::commit`] or [`Database::roll_back`] ends it.
    ///
    /// # Errors
    /// If the database reports an error.
    fn begin(&self, access: Access) -> Result<()>;

    /// Commits a transaction; its writes are on disk when this returns.
    ///
    /// # Errors
    /// If the database reports an error.
    fn commit(&self) -> Result<()>;

    /// Rolls back a transaction, if there is one.
    ///
    /// # Errors
    /// If the database reports an error.
    fn roll_back(&self) -> Result<()>;

    /// The numbers of texts that others than trials refer to.
    ///
    /// # Errors
    /// If the database reports an error.
    fn texts_of_others(&self) -> Result<Vec<i64>>;

    /// The size of the records in bytes.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn bytes(&self) -> Result<u64>;

    /// Frees the space of removed rows.
    ///
    /// # Errors
    /// If the database reports an error.
    fn give_back(&self) -> Result<()>;

    /// The query plan of a query with two numbers, as the database prints it.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn plan(&self, sql: &str) -> Result<String>;

    /// Sets the lock timeout.
    ///
    /// # Errors
    /// If the database reports an error.
    fn set_patience(&mut self, patience: Duration) -> Result<()>;
}

/// Helpers on top of [`Database`].
pub(crate) trait DatabaseExt: Database {
    /// The first row of a query.
    fn one<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&Row) -> Read<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        self.each(sql, values, &mut |row| {
            found = Some(read(row)?);
            Ok(false)
        })?;
        Ok(found)
    }

    /// All rows of a query.
    fn all<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row) -> Read<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, values, &mut |row| {
            all.push(read(row)?);
            Ok(true)
        })?;
        Ok(all)
    }

    /// Commits on success, rolls back on error.
    fn end<T>(&self, result: Result<T>) -> Result<T> {
        let result = result.and_then(|value| self.commit().map(|()| value));
        if result.is_err() {
            // The first error is the one to report.
            let _ = self.roll_back();
        }
        result
    }

    /// Runs work in a transaction.
    fn transaction<T>(&self, access: Access, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begin(access)?;
        self.end(work())
    }

    /// The error for contents that this crate does not write.
    fn corrupt(&self, detail: impl Into<String>) -> Error {
        Error::corrupt(self.location(), detail)
    }
}

impl<D: Database + ?Sized> DatabaseExt for D {}
