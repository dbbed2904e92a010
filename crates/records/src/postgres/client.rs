//! [`Client`]: a synchronous connection whose every wait is limited.
//!
//! It wraps the asynchronous client in a small runtime of its own: only that can stop waiting for
//! an answer after a time limit. A suspended server keeps its connections open and never answers.

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

/// The most prepared statements to keep.
const STATEMENTS: usize = 200;

/// When the server ends a session that is idle inside a transaction.
const IDLE_IN_TRANSACTION: &str = "60s";

/// A connection to a server.
pub struct Client {
    runtime: Runtime,
    client: tokio_postgres::Client,
    statements: RefCell<HashMap<String, Statement>>,
    location: Location,
    /// The lock timeout, for messages.
    patience: Duration,
}

impl Client {
    /// Connects within a time limit per host. Names are looked up in the schema of the settings.
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
        // Covers connecting, encrypting and signing in, for all hosts.
        let hosts = u32::try_from(config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
        let limit = limit.saturating_mul(hosts.saturating_mul(2));
        let failed = |error: &tokio_postgres::Error| failure(&location, limit, error);
        let connecting = async {
            // The connection is driven whenever the runtime runs, until the client is dropped.
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

    /// Sets the lock timeout shown in messages.
    pub(crate) fn note_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Runs statements without parameters or results.
    ///
    /// # Errors
    /// If the server reports an error or does not answer within the limit.
    pub fn batch(&self, sql: &str, limit: Duration) -> Result<()> {
        self.run(limit, self.client.batch_execute(sql))
    }

    /// Runs a statement; returns the number of changed rows.
    ///
    /// # Errors
    /// If the server reports an error or does not answer within the limit.
    pub fn execute(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        limit: Duration,
    ) -> Result<u64> {
        let statement = self.statement(sql, limit)?;
        self.run(limit, self.client.execute(&statement, values))
    }

    /// Runs a query; returns all rows.
    ///
    /// # Errors
    /// If the server reports an error or does not answer within the limit.
    pub fn query(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        limit: Duration,
    ) -> Result<Vec<Row>> {
        let statement = self.statement(sql, limit)?;
        self.run(limit, self.client.query(&statement, values))
    }

    /// A statement, prepared once.
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

    /// Waits for the server within a limit.
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
