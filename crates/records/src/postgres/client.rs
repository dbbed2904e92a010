//! [`Client`]: a connection that never waits without a limit.
//!
//! The callers are loops that do one thing after another, so this is synchronous. It is a small runtime of its own around
//! the asynchronous client, because only that lets a limit of time end the wait for an answer: a server that was
//! stopped keeps its connections open and says nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row, Statement};

use super::failure::failure;
use super::settings::Settings;
use super::tls;
use crate::error::{Error, Result};
use crate::location::Location;

/// Prepared statements that are kept.
const STATEMENTS: usize = 200;

/// How long the server is asked to end a session by itself that does nothing inside of a transaction.
const IDLE_IN_TRANSACTION: &str = "60s";

/// A connection to a server.
pub struct Client {
    runtime: Runtime,
    client: tokio_postgres::Client,
    statements: RefCell<HashMap<String, Statement>>,
    location: Location,
    /// How long a lock is waited for, for the message.
    patience: Duration,
}

impl Client {
    /// Connects, within a limit of time for each host. The schema of the settings is where names are looked for.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn connect(settings: &Settings, limit: Duration) -> Result<Self> {
        let location = settings.location.clone();
        let unreachable = |reason: String| Error::Unreachable { at: location.clone(), reason };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| unreachable(error.to_string()))?;
        let mut config = settings.config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(limit);
        }
        // Connecting, encrypting and signing in together, for all hosts.
        let hosts = u32::try_from(config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
        let limit = limit.saturating_mul(hosts.saturating_mul(2));
        let failed = |error: &tokio_postgres::Error| failure(&location, limit, error);
        let connecting = async {
            // The connection does its part whenever the runtime runs, until the client is dropped.
            if let Some(files) = &settings.tls {
                let wrong = |reason| Error::Url { at: location.clone(), reason };
                let tls = tls::connector(files).map_err(wrong)?;
                let (client, connection) =
                    config.connect(tls).await.map_err(|error| failed(&error))?;
                tokio::spawn(connection);
                Ok(client)
            } else {
                let (client, connection) =
                    config.connect(NoTls).await.map_err(|error| failed(&error))?;
                tokio::spawn(connection);
                Ok(client)
            }
        };
        let limited = async { tokio::time::timeout(limit, connecting).await };
        let client = match runtime.block_on(limited) {
            Ok(client) => client?,
            Err(_) => {
                let seconds = limit.as_secs_f64();
                return Err(unreachable(format!("it did not answer for {seconds} s")));
            }
        };
        let statements = RefCell::default();
        let client = Self { runtime, client, statements, location, patience: Duration::ZERO };
        let path = settings.schema();
        let sql = format!(
            "SET search_path = {path}, pg_temp;
             SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION}'"
        );
        client.batch(&sql, limit)?;
        Ok(client)
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Remembers how long locks are waited for.
    pub(crate) fn note_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Runs statements without parameters or results.
    ///
    /// # Errors
    /// What the server says, or that it did not answer within the limit.
    pub fn batch(&self, sql: &str, limit: Duration) -> Result<()> {
        self.run(limit, self.client.batch_execute(sql))
    }

    /// Runs a statement; the number of rows that it changed.
    ///
    /// # Errors
    /// What the server says, or that it did not answer within the limit.
    pub fn execute(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        limit: Duration,
    ) -> Result<u64> {
        let statement = self.statement(sql, limit)?;
        self.run(limit, self.client.execute(&statement, values))
    }

    /// All rows of a query.
    ///
    /// # Errors
    /// What the server says, or that it did not answer within the limit.
    pub fn query(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        limit: Duration,
    ) -> Result<Vec<Row>> {
        let statement = self.statement(sql, limit)?;
        self.run(limit, self.client.query(&statement, values))
    }

    /// A statement that is prepared once.
    fn statement(&self, sql: &str, limit: Duration) -> Result<Statement> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.run(limit, self.client.prepare(sql))?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= STATEMENTS {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Waits for something the server does, within a limit.
    fn run<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        match self.runtime.block_on(async { tokio::time::timeout(limit, work).await }) {
            Ok(result) => result.map_err(|error| failure(&self.location, self.patience, &error)),
            Err(_) => {
                let reason = format!("it did not answer for {} s", limit.as_secs_f64());
                Err(Error::Unreachable { at: self.location.clone(), reason })
            }
        }
    }
}
