//! The shared test server.

use std::time::Duration;

use tensorwright_records::postgres::{Client, Settings};
use tensorwright_records::{Location, RunId};

const LIMIT: Duration = Duration::from_secs(20);

/// A schema of one test, dropped at its end.
pub(crate) struct Schema {
    name: String,
    location: Location,
}

impl Schema {
    /// A schema that is not created yet; `None` if there is no server.
    pub(crate) fn new() -> Option<Self> {
        Some(Self::of(&tensorwright_testkit::postgres::shared()?))
    }

    /// A schema of a server.
    pub(crate) fn of(url: &str) -> Self {
        let name = format!("t{}", RunId::fresh());
        let Ok(location) = format!("{url}?schema={name}").parse();
        Self { name, location }
    }

    pub(crate) fn location(&self) -> Location {
        self.location.clone()
    }

    pub(crate) fn client(&self) -> Client {
        let Location::Server(url) = &self.location else { unreachable!() };
        Client::connect(&Settings::of(url).unwrap(), LIMIT).unwrap()
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.client().batch(sql, LIMIT).unwrap();
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        // A failing test has already reported why.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.execute(&sql)));
    }
}
