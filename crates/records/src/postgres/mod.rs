//! [`PostgresStore`]: records on a server that several machines share.
//!
//! | where | what |
//! | --- | --- |
//! | `settings.rs` | the settings of a URL: hosts, the schema, encryption |
//! | `password.rs` | the password, from the environment or a private file |
//! | `tls.rs` | certificates |
//! | `client.rs` | `Client`: a synchronous connection whose every wait is limited |
//! | `db.rs` | `Postgres`: the database of a store |

mod client;
mod db;
mod failure;
mod password;
mod settings;
mod tls;

pub use client::Client;
pub use settings::Settings;
pub use tokio_postgres::Row;
pub use tokio_postgres::types::{FromSql, ToSql};

use db::Postgres;

use crate::error::Result;
use crate::location::Url;
use crate::schema;
use crate::sql::{SqlStore, create, migrate, version};
use crate::store_options::StoreOptions;

/// Records on a PostgreSQL server.
pub type PostgresStore = SqlStore<Postgres>;

impl PostgresStore {
    /// Opens the records of a server; creates their tables if missing.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses, or the tables are not ours or come from a newer version.
    pub fn open(url: &Url, options: StoreOptions) -> Result<Self> {
        let db = Postgres::open(url, options)?;
        match version(&db)? {
            None => {
                db.make_schema()?;
                create(&db)?;
            }
            Some(found) if found < schema::VERSION => migrate(&db)?,
            Some(_) => {}
        }
        Ok(Self::on(db, false))
    }

    /// [`PostgresStore::open`], but `None` if there are no tables.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub fn open_existing(url: &Url, options: StoreOptions) -> Result<Option<Self>> {
        let db = Postgres::open(url, options)?;
        Ok(version(&db)?.map(|found| Self::on(db, found < schema::VERSION)))
    }
}
