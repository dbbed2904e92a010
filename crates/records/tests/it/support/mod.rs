//! Shared test helpers: directories and records.
#![allow(unused_macros, reason = "each test file uses a part of it")]

pub(crate) mod synthetic;

#[cfg(feature = "postgres")]
pub(crate) mod server;

use std::path::{Path, PathBuf};

use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::{
    AnyStore, Key, Location, ProgramInfo, RunId, RunInfo, Store, StoreOptions, Trial, open_at,
};

/// A place for records and a directory, both removed at the end of the test.
pub(crate) struct Scratch {
    directory: tempfile::TempDir,
    location: Location,
    #[cfg(feature = "postgres")]
    _schema: Option<server::Schema>,
}

impl Scratch {
    /// A file.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::File(directory.path().join("records.sqlite3"));
        Self {
            directory,
            location,
            #[cfg(feature = "postgres")]
            _schema: None,
        }
    }

    /// A schema on the test server; `None` if there is none.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_server() -> Option<Self> {
        let schema = server::Schema::new()?;
        let directory = tempfile::tempdir().unwrap();
        Some(Self { directory, location: schema.location(), _schema: Some(schema) })
    }

    /// Another place of the same kind.
    pub(crate) fn another(&self) -> Self {
        #[cfg(feature = "postgres")]
        if self.is_on_server() {
            return Self::on_server().unwrap();
        }
        Self::new()
    }

    pub(crate) fn is_on_server(&self) -> bool {
        matches!(self.location, Location::Server(_))
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The file of the records.
    pub(crate) fn db(&self) -> PathBuf {
        self.path().join("records.sqlite3")
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn store(&self) -> AnyStore {
        open_at(&self.location, quick()).unwrap()
    }

    /// Changes the tables directly.
    pub(crate) fn execute(&self, sql: &str) {
        #[cfg(feature = "postgres")]
        if let Some(schema) = &self._schema {
            return schema.execute(sql);
        }
        let connection = rusqlite::Connection::open(self.db()).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

/// Runs tests on a file and on a server: functions that are given a [`Scratch`].
macro_rules! on_every_database {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(&super::support::Scratch::new()); })*
        }
        #[cfg(feature = "postgres")]
        mod on_postgres {
            $(#[test] fn $name() {
                let Some(scratch) = super::support::Scratch::on_server() else { return };
                super::$name(&scratch);
            })*
        }
    };
}
#[allow(unused_imports, reason = "each test file uses a part of it")]
pub(crate) use on_every_database;

/// Options without durability, which tests do not need.
pub(crate) fn quick() -> StoreOptions {
    StoreOptions { durable: false, ..StoreOptions::default() }
}

pub(crate) fn program(m: i64) -> ProgramInfo {
    ProgramInfo {
        hash: format!("gemm-{m}"),
        family: "gemm".into(),
        def: "gemm".into(),
        sizes: [("M".to_owned(), m), ("N".to_owned(), 64)].into(),
        text: format!("def gemm(float({m},64) A) -> (C) {{ C(m,n) = A(m,n) }}\n"),
        flops: 128.0 * m as f64,
        bytes: 8.0 * m as f64,
    }
}

pub(crate) fn key(program: &ProgramInfo) -> Key {
    Key::new(program, "A Processor [avx2 fma]", 1, "0.1.0 llvm-19")
}

pub(crate) fn timing(seconds: f64) -> Timing {
    Timing { seconds, raw_seconds: seconds * 1.1, spread: 0.02, runs: 9, ..Timing::default() }
}

/// A trial with this time.
pub(crate) fn measured(number: u64, seconds: f64) -> Trial {
    let schedule = format!("C: split m {} -> m.0 m.1\nC: vectorize n\n", number + 2);
    let outcome = Outcome::Measured(timing(seconds));
    Trial {
        outcome,
        origin: "random".into(),
        elapsed: 0.5 * number as f64,
        ..Trial::new(number, vec![number as u32, 7, 300], &schedule)
    }
}

/// Starts a run of a key.
pub(crate) fn begin(store: &mut dyn Store, key: &Key, program: &ProgramInfo) -> RunId {
    store.begin_run(key, program, &RunInfo::new("random", 1)).unwrap()
}
