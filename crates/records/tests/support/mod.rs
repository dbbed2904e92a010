//! Directories and records that tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod synthetic;

use std::path::{Path, PathBuf};

use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::{Key, Options, ProgramInfo, RunId, RunInfo, SqliteStore, Store, Trial};

/// A directory that is removed at the end of the test.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.path().join("records.sqlite3")
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.db(), quick()).unwrap()
    }
}

/// Tests do not need to outlast a loss of power.
pub(crate) fn quick() -> Options {
    Options { durable: false, ..Options::default() }
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

/// A trial that took so long.
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

/// A run of a key that has begun.
pub(crate) fn begin(store: &mut dyn Store, key: &Key, program: &ProgramInfo) -> RunId {
    store.begin_run(key, program, &RunInfo::new("random", 1)).unwrap()
}
