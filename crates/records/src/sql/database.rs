//! [`Database`]: what the store asks of a connection. All that differs between databases is here.

use std::time::Duration;

use super::row::{Read, Row, Value};
use crate::error::{Error, Result};
use crate::location::Location;

/// Who else may write while a transaction lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Others that only add. SQLite lets nobody write at the same time anyway.
    Adding,
    /// Nobody: rows are removed, whose numbers others remember.
    Removing,
    /// Nobody who makes tables: there are none yet.
    Making,
}

/// A connection to a database. Parameters of statements are `$1` and so on, and first appear in their order.
pub trait Database {
    /// How often a transaction is begun anew that another one was in the way of.
    const ATTEMPTS: u32;

    /// What follows a query whose row nobody else may change until the transaction ends.
    const FOR_UPDATE: &'static str;

    /// Where it is.
    fn location(&self) -> &Location;

    /// A statement that makes tables, which [`crate::schema`] has in SQLite's words, in the words of this database.
    fn words(&self, sql: &str) -> String;

    /// The number of tables where records belong, and whether one of them is `meta`.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn tables(&self) -> Result<(u64, bool)>;

    /// Runs statements that are not worth keeping, without parameters or results.
    ///
    /// # Errors
    /// What the database says.
    fn batch(&self, sql: &str) -> Result<()>;

    /// Runs a statement; the number of rows that it changed.
    ///
    /// # Errors
    /// What the database says.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64>;

    /// Calls a function with each row of a query, until it says that this is enough.
    ///
    /// # Errors
    /// What the database says, and if the function cannot read a row.
    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut dyn FnMut(&Row) -> Read<bool>,
    ) -> Result<()>;

    /// Begins a transaction, which [`Database::commit`] or [`Database::roll_back`] ends.
    ///
    /// # Errors
    /// What the database says.
    fn begin(&self, access: Access) -> Result<()>;

    /// Ends a transaction; what it wrote is on disk when this returns.
    ///
    /// # Errors
    /// What the database says.
    fn commit(&self) -> Result<()>;

    /// Takes back what a transaction did, if there is one.
    ///
    /// # Errors
    /// What the database says.
    fn roll_back(&self) -> Result<()>;

    /// The numbers of texts that others than trials refer to.
    ///
    /// # Errors
    /// What the database says.
    fn texts_of_others(&self) -> Result<Vec<i64>>;

    /// The size of the records in bytes.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn bytes(&self) -> Result<u64>;

    /// Gives back the space of rows that were removed.
    ///
    /// # Errors
    /// What the database says.
    fn give_back(&self) -> Result<()>;

    /// How a query of two numbers is answered, in the words of the database.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn plan(&self, sql: &str) -> Result<String>;

    /// Waits for others as long as this from now on.
    ///
    /// # Errors
    /// What the database says.
    fn set_patience(&mut self, patience: Duration) -> Result<()>;
}

/// What is the same for all databases.
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

    /// Commits what went well and takes back what did not.
    fn end<T>(&self, result: Result<T>) -> Result<T> {
        let result = result.and_then(|value| self.commit().map(|()| value));
        if result.is_err() {
            // The first error is the one to report.
            let _ = self.roll_back();
        }
        result
    }

    /// Does work in a transaction.
    fn transaction<T>(&self, access: Access, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begin(access)?;
        self.end(work())
    }

    /// That the database holds something that this crate does not write.
    fn corrupt(&self, detail: impl Into<String>) -> Error {
        Error::corrupt(self.location(), detail)
    }
}

impl<D: Database + ?Sized> DatabaseExt for D {}
