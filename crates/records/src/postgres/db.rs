//! [`Postgres`]: the PostgreSQL database of a store.

use std::cell::{Cell, Ref, RefCell};
use std::error::Error as StdError;
use std::time::Duration;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::client::Client;
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::location::{Location, Url};
use crate::sql::database::DatabaseExt as _;
use crate::sql::row::{Cell as Column, Read, Row, Value, values};
use crate::sql::{Access, Database};
use crate::store_options::StoreOptions;

/// The time limit of a query: one about millions of records takes seconds.
const READING: Duration = Duration::from_secs(120);

/// The time limit of an insert, in units of the lock timeout.
const ADDING: u32 = 3;

/// The time limit of statements that remove records or free their space.
const REMOVING: Duration = Duration::from_secs(3600);

/// How much longer than the server the client waits: the server's error is more informative.
const GRACE: Duration = Duration::from_secs(5);

/// Lock modes of writers and of removers: a remover waits for all others, and all others wait for
/// it. Taking them requires a privilege on the table.
const ADD: &str = "LOCK TABLE texts IN ROW EXCLUSIVE MODE";
const REMOVE: &str = "LOCK TABLE texts IN SHARE ROW EXCLUSIVE MODE";

/// The tables of records, to compute their size.
const TABLES: [&str; 9] =
    ["meta", "programs", "keys", "runs", "texts", "trials", "bests", "removed", "verified"];

/// A connection to a server, reopened if it was lost between transactions.
pub struct Postgres {
    settings: Settings,
    options: StoreOptions,
    client: RefCell<Option<Client>>,
    is_in_transaction: Cell<bool>,
    /// The current time limit of statements.
    limit: Cell<Duration>,
    /// The lock timeout.
    patience: Duration,
}

impl Postgres {
    /// Connects to a server. Nothing is read or written yet.
    pub(super) fn open(url: &Url, options: StoreOptions) -> Result<Self> {
        let settings = Settings::of(url)?;
        let (patience, limit) = (options.busy_timeout, Cell::new(READING));
        let (client, is_in_transaction) = (RefCell::default(), Cell::new(false));
        let db = Self { settings, options, client, is_in_transaction, limit, patience };
        db.connect()?;
        Ok(db)
    }

    /// Creates the schema of the records, unless it exists.
    pub(super) fn make_schema(&self) -> Result<()> {
        let name = self.settings.schema();
        self.transaction(Access::Making, || {
            let known = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
            match self.one(known, values![name], |row| row.get::<i64>(0))? {
                Some(0) => self.batch(&format!("CREATE SCHEMA {name}")),
                _ => Ok(()),
            }
        })
    }

    fn connect(&self) -> Result<()> {
        let mut client = Client::connect(&self.settings, self.options.busy_timeout)?;
        client.note_patience(self.patience);
        let commit = if self.options.durable { "on" } else { "off" };
        let sql = format!(
            "SET statement_timeout = {}; SET lock_timeout = {}; SET synchronous_commit = {commit}",
            READING.as_millis(),
            self.patience.as_millis().max(1)
        );
        client.batch(&sql, self.grace())?;
        *self.client.borrow_mut() = Some(client);
        Ok(())
    }

    /// The connection, reopened if it was lost. Inside a transaction, reopening would forget its
    /// writes.
    fn connected(&self) -> Result<Ref<'_, Client>> {
        let is_lost = self.client.borrow().as_ref().is_none_or(Client::is_closed);
        if is_lost && self.is_in_transaction.get() {
            return Err(self.lost());
        }
        if is_lost {
            self.connect()?;
        }
        Ref::filter_map(self.client.borrow(), Option::as_ref).map_err(|_| self.lost())
    }

    fn lost(&self) -> Error {
        let reason = "the connection was lost during a transaction".to_owned();
        Error::Unreachable { at: self.location().clone(), reason }
    }

    /// Runs `work`, and runs it again if the connection turns out to have been lost before. So work
    /// outside of a transaction may run twice.
    fn ask<T>(&self, mut work: impl FnMut(&Client) -> Result<T>) -> Result<T> {
        let is_fresh = self.client.borrow().is_none();
        let result = self.connected().and_then(|client| work(&client));
        let Err(Error::Unreachable { .. }) = &result else { return result };
        let was_closed = self.client.borrow().as_ref().is_some_and(Client::is_closed);
        self.client.replace(None);
        if is_fresh || !was_closed || self.is_in_transaction.get() {
            return result;
        }
        let client = self.connected()?;
        work(&client)
    }

    fn limited(&self) -> Duration {
        self.limit.get() + self.grace()
    }

    fn grace(&self) -> Duration {
        GRACE.min(self.options.busy_timeout)
    }

    fn end_transaction(&self, sql: &str) -> Result<()> {
        let result = self.ask(|client| client.batch(sql, self.limited()));
        self.is_in_transaction.set(false);
        self.limit.set(READING);
        result
    }
}

/// Converts values for the client.
fn parameters<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| -> &(dyn ToSql + Sync) { value }).collect()
}

impl Database for Postgres {
    const ATTEMPTS: u32 = 5;

    const FOR_UPDATE: &'static str = " FOR UPDATE";

    fn location(&self) -> &Location {
        self.settings.location()
    }

    fn words(&self, sql: &str) -> String {
        // Texts are compared byte by byte, as in SQLite.
        sql.replace("INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
            .replace("BLOB", "BYTEA")
            .replace(" TEXT", " TEXT COLLATE \"C\"")
    }

    fn tables(&self) -> Result<(u64, bool)> {
        let sql = "SELECT count(*), count(*) FILTER (WHERE tablename = 'meta')
                   FROM pg_tables WHERE schemaname = $1";
        let read = |row: &Row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?));
        let found = self.one(sql, values![self.settings.schema()], read)?;
        let (tables, meta) = found.unwrap_or_default();
        Ok((tables.cast_unsigned(), meta == 1))
    }

    fn batch(&self, sql: &str) -> Result<()> {
        self.ask(|client| client.batch(sql, self.limited()))
    }

    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64> {
        self.ask(|client| client.execute(sql, &parameters(values), self.limited()))
    }

    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut dyn FnMut(&Row) -> Read<bool>,
    ) -> Result<()> {
        for row in self.ask(|client| client.query(sql, &parameters(values), self.limited()))? {
            let cells = (0..row.len()).map(|at| row.try_get::<_, Column>(at));
            let cells = cells.collect::<Result<Vec<Column>, _>>();
            let cells = cells.map_err(|error| self.corrupt(error.to_string()))?;
            match visit(&Row(cells)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => return Err(self.corrupt(reason.to_string())),
            }
        }
        Ok(())
    }

    fn begin(&self, access: Access) -> Result<()> {
        let (limit, lock) = match access {
            Access::Adding => (self.options.busy_timeout * ADDING, ADD.to_owned()),
            Access::Removing => (REMOVING, REMOVE.to_owned()),
            Access::Making => {
                let name = self.settings.schema();
                (REMOVING, format!("SELECT pg_advisory_xact_lock(hashtextextended('{name}', 0))"))
            }
        };
        let sql = format!("BEGIN; SET LOCAL statement_timeout = {}; {lock}", limit.as_millis());
        self.ask(|client| client.batch(&sql, limit + self.grace())).inspect_err(|_| {
            // It is unknown whether it has begun.
            self.client.replace(None);
        })?;
        self.is_in_transaction.set(true);
        self.limit.set(limit);
        Ok(())
    }

    fn commit(&self) -> Result<()> {
        self.end_transaction("COMMIT")
    }

    fn roll_back(&self) -> Result<()> {
        let is_connected = self.client.borrow().as_ref().is_some_and(|client| !client.is_closed());
        if self.is_in_transaction.get() && is_connected {
            return self.end_transaction("ROLLBACK");
        }
        self.is_in_transaction.set(false);
        self.limit.set(READING);
        Ok(())
    }

    /// Texts of items in a fleet's queue that are not done; trials refer to those that are.
    fn texts_of_others(&self) -> Result<Vec<i64>> {
        let has_queue =
            "SELECT to_regclass('items') IS NOT NULL AND to_regclass('done') IS NOT NULL";
        let has_queue = format!("SELECT CASE WHEN ({has_queue}) THEN 1 ELSE 0 END");
        if self.one(&has_queue, &[], |row| row.get::<i64>(0))? != Some(1) {
            return Ok(Vec::new());
        }
        self.batch(
            "DELETE FROM items i USING done d WHERE (d.run_id, d.number) = (i.run_id, i.number)",
        )?;
        let sql = "SELECT unnest(lines || origin || algorithm) FROM items";
        let texts: Vec<Option<i64>> = self.all(sql, &[], |row| row.get(0))?;
        Ok(texts.into_iter().flatten().collect())
    }

    fn bytes(&self) -> Result<u64> {
        let names = TABLES.map(|table| format!("pg_total_relation_size('{table}')")).join(" + ");
        let bytes = self.one(&format!("SELECT {names}"), &[], |row| row.get::<i64>(0))?;
        Ok(bytes.unwrap_or(0).cast_unsigned())
    }

    fn give_back(&self) -> Result<()> {
        self.limit.set(REMOVING);
        // Other processes keep writing: files shrink only where their ends are empty, and the rest
        // is reused.
        let result = self
            .batch("SET statement_timeout = 0")
            .and_then(|()| self.batch("VACUUM (ANALYZE) trials"))
            .and_then(|()| self.batch("VACUUM (ANALYZE) texts"));
        self.limit.set(READING);
        self.batch(&format!("SET statement_timeout = {}", READING.as_millis()))?;
        result
    }

    fn plan(&self, sql: &str) -> Result<String> {
        let sql = format!("EXPLAIN (COSTS OFF) {}", sql.replace("$1", "1").replace("$2", "1"));
        let steps: Vec<String> = self.all(&sql, &[], |row| row.get(0))?;
        Ok(steps.join("\n"))
    }

    fn set_patience(&mut self, patience: Duration) -> Result<()> {
        if self.patience == patience {
            return Ok(());
        }
        self.patience = patience;
        if let Some(client) = self.client.get_mut() {
            client.note_patience(patience);
            return self.batch(&format!("SET lock_timeout = {}", patience.as_millis().max(1)));
        }
        Ok(())
    }
}

type Failure = Box<dyn StdError + Sync + Send>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match (*self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(value), &Type::INT2) => i16::try_from(value)?.to_sql(kind, out),
            (Self::Int(value), &Type::INT4) => i32::try_from(value)?.to_sql(kind, out),
            (Self::Int(value), &Type::FLOAT8) => (value as f64).to_sql(kind, out),
            (Self::Int(value), &Type::INT8) => value.to_sql(kind, out),
            (Self::Real(value), &Type::FLOAT8) => value.to_sql(kind, out),
            (Self::Text(value), kind) if <&str as ToSql>::accepts(kind) => value.to_sql(kind, out),
            (Self::Bytes(value), &Type::BYTEA) => value.to_sql(kind, out),
            (value, kind) => Err(format!("{value:?} is no {kind}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Column {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        Ok(match *kind {
            Type::INT2 => Self::Int(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Self::Int(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Self::Int(i64::from_sql(kind, raw)?),
            Type::FLOAT8 => Self::Real(f64::from_sql(kind, raw)?),
            Type::BYTEA => Self::Bytes(Vec::from_sql(kind, raw)?),
            _ => Self::Text(String::from_sql(kind, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Self::Null)
    }

    fn accepts(kind: &Type) -> bool {
        let numbers = [Type::INT2, Type::INT4, Type::INT8, Type::FLOAT8, Type::BYTEA];
        numbers.contains(kind) || <String as FromSql>::accepts(kind)
    }
}
