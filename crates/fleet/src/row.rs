//! [`Row`]: a row of the server's answer, validated when read.

use tensorwright_records::postgres::FromSql;
use tensorwright_records::{Error, Location, Result, postgres};

/// Types that columns can be read as.
pub(crate) trait FromRow: for<'a> FromSql<'a> {}

impl<T: for<'a> FromSql<'a>> FromRow for T {}

/// A row of an answer.
pub(crate) struct Row {
    row: postgres::Row,
    at: Location,
}

impl Row {
    pub(crate) fn new(row: postgres::Row, at: &Location) -> Self {
        Self { row, at: at.clone() }
    }

    /// The value of a column, or an error for an unexpected type.
    pub(crate) fn get<T: FromRow>(&self, place: usize) -> Result<T> {
        let failed = |error: &dyn std::fmt::Display| Error::Database {
            at: self.at.clone(),
            detail: format!("the server answered with an unexpected type: {error}"),
        };
        self.row.try_get(place).map_err(|error| failed(&error))
    }
}
