//! Opens records in a file or on a server.

use crate::error::{Error, Result};
use crate::location::{Location, Url};
use crate::sqlite::SqliteStore;
use crate::store::Store;
use crate::store_options::StoreOptions;

/// Records of any database.
pub type AnyStore = Box<dyn Store + Send>;

/// Opens the records at a place, or at the [default one](Location::given); creates them if missing.
///
/// # Errors
/// If there is no default place, or the database cannot be opened or is not one of records.
pub fn open(place: Option<&Location>) -> Result<AnyStore> {
    open_at(&Location::given(place)?, StoreOptions::default())
}

/// [`open`] with options.
///
/// # Errors
/// As [`open`].
pub fn open_at(place: &Location, options: StoreOptions) -> Result<AnyStore> {
    let _span = tracing::debug_span!("open records", %place).entered();
    match place {
        Location::File(path) => Ok(Box::new(SqliteStore::open(path, options)?)),
        Location::Server(url) => server(url, options, true)?.ok_or_else(|| no_records(place)),
    }
}

/// [`open`], but `None` if there are no records: it creates no files and no tables, and opens
/// unwritable records read-only.
///
/// # Errors
/// As [`open`].
pub fn open_existing(place: Option<&Location>) -> Result<Option<AnyStore>> {
    let place = Location::given(place)?;
    let _span = tracing::debug_span!("open records", %place).entered();
    let path = match &place {
        Location::File(path) => path,
        Location::Server(url) => return server(url, StoreOptions::default(), false),
    };
    if let Ok(false) = path.try_exists() {
        return Ok(None);
    }
    let store = match SqliteStore::open(path, StoreOptions::default()) {
        Err(Error::ReadOnly { .. } | Error::CannotOpen { .. }) => {
            SqliteStore::open_read_only(path, &StoreOptions::default())
        }
        opened => opened,
    };
    Ok(Some(Box::new(store?)))
}

fn no_records(place: &Location) -> Error {
    Error::corrupt(place, "its tables went away")
}

#[cfg(feature = "postgres")]
fn server(url: &Url, options: StoreOptions, make: bool) -> Result<Option<AnyStore>> {
    use crate::postgres::PostgresStore;
    if make {
        return Ok(Some(Box::new(PostgresStore::open(url, options)?)));
    }
    let store = PostgresStore::open_existing(url, options)?;
    Ok(store.map(|store| -> AnyStore { Box::new(store) }))
}

#[cfg(not(feature = "postgres"))]
fn server(url: &Url, _: StoreOptions, _: bool) -> Result<Option<AnyStore>> {
    Err(Error::NoServers { at: Location::Server(url.clone()) })
}
