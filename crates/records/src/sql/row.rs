//! Values that go to a database and rows that come from it.

use std::fmt;

/// The value of a statement's parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Int(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// The value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Int(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A row of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(pub(crate) Vec<Cell>);

/// A column with an unexpected value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(String);

/// The result of reading a row.
pub(crate) type Read<T> = Result<T, Mismatch>;

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl Row {
    /// The value of a column, counted from zero.
    pub(crate) fn get<T: FromCell>(&self, at: usize) -> Read<T> {
        let cell = self.0.get(at).unwrap_or(&Cell::Null);
        T::from_cell(cell).ok_or_else(|| {
            let kind = match cell {
                Cell::Null => "nothing".to_owned(),
                Cell::Int(value) => value.to_string(),
                Cell::Real(value) => value.to_string(),
                Cell::Text(_) => "a text".to_owned(),
                Cell::Bytes(_) => "bytes".to_owned(),
            };
            Mismatch(format!("column {at} of a row has {kind} instead of {}", T::WANTED))
        })
    }
}

/// Types that columns can be read as.
pub(crate) trait FromCell: Sized {
    /// The name of the type.
    const WANTED: &'static str;

    /// The value of a cell; `None` if it is something else.
    fn from_cell(cell: &Cell) -> Option<Self>;
}

macro_rules! whole {
    ($($type:ty = $wanted:literal),*) => {$(
        impl FromCell for $type {
            const WANTED: &'static str = $wanted;

            fn from_cell(cell: &Cell) -> Option<Self> {
                let Cell::Int(value) = cell else { return None };
                (*value).try_into().ok()
            }
        }

        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::Int(value.into())
            }
        }
    )*};
}

whole!(i64 = "a whole number", u32 = "a whole number from 0 to 2^32");

impl FromCell for f64 {
    const WANTED: &'static str = "a number";

    fn from_cell(cell: &Cell) -> Option<Self> {
        match cell {
            Cell::Real(value) => Some(*value),
            Cell::Int(value) => Some(*value as Self),
            _ => None,
        }
    }
}

impl FromCell for String {
    const WANTED: &'static str = "a text";

    fn from_cell(cell: &Cell) -> Option<Self> {
        if let Cell::Text(text) = cell { Some(text.clone()) } else { None }
    }
}

impl FromCell for Vec<u8> {
    const WANTED: &'static str = "bytes";

    fn from_cell(cell: &Cell) -> Option<Self> {
        if let Cell::Bytes(bytes) = cell { Some(bytes.clone()) } else { None }
    }
}

impl<T: FromCell> FromCell for Option<T> {
    const WANTED: &'static str = T::WANTED;

    fn from_cell(cell: &Cell) -> Option<Self> {
        if *cell == Cell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of a statement: `values![key, 3]`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::row::Value::from($value)),*] };
}
pub(crate) use values;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_is_something_else_is_told() {
        let row = Row(vec![Cell::Int(-1), Cell::Null, Cell::Text("x".into()), Cell::Real(0.5)]);
        assert_eq!(row.get::<i64>(0), Ok(-1));
        assert_eq!(row.get::<Option<f64>>(1), Ok(None));
        assert_eq!(row.get::<f64>(3), Ok(0.5));
        let says = |at| row.get::<u32>(at).unwrap_err().to_string();
        assert_eq!(says(0), "column 0 of a row has -1 instead of a whole number from 0 to 2^32");
        assert_eq!(
            says(2),
            "column 2 of a row has a text instead of a whole number from 0 to 2^32"
        );
        assert_eq!(
            says(9),
            "column 9 of a row has nothing instead of a whole number from 0 to 2^32"
        );
    }
}
