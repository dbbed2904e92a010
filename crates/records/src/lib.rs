//! Records: every outcome of every run, kept where the next run finds it.
//!
//! An outcome is committed when it happens and is on disk when [`Store::insert`] returns. Records
//! live in one SQLite file that several processes share, the only [`Store`] that there is.
//!
//! ```
//! use tensorwright_records::{Key, Options, ProgramInfo, RunInfo, SqliteStore, Store, Trial};
//! use tensorwright_outcome::{Outcome, Timing};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("records.sqlite3");
//!
//! let mut store = SqliteStore::open(&path, Options::default())?;
//! let program = ProgramInfo { hash: "p1".into(), family: "f".into(), ..ProgramInfo::default() };
//! let key = Key::new(&program, "a processor [avx2]", 1, "0.1.0 llvm-19");
//! let run = store.begin_run(&key, &program, &RunInfo::new("random", 7))?;
//! let timing = Timing { seconds: 0.002, runs: 10, ..Timing::default() };
//! let trial = Trial { outcome: Outcome::Measured(timing), ..Trial::new(0, vec![3, 1], "C: split m 8\n") };
//! store.insert(&run, &trial)?;
//! assert_eq!(store.best(&key)?.map(|best| best.seconds), Some(0.002));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | where | what |
//! | --- | --- |
//! | `program.rs`, `key.rs`, `model.rs` | what a record is and what it is found by |
//! | `answer.rs` | what questions about records are answered with |
//! | `store.rs` | [`Store`], what a store does |
//! | `schema.rs` | the tables |
//! | `sqlite/` | [`SqliteStore`] |
//! | `journal.rs` | [`Journal`], which loses nothing while the database cannot be written |
//! | `claim.rs` | [`Claim`]: a run belongs to a process that is alive |
//! | `transfer/` | export and import |

mod answer;
mod claim;
mod codec;
mod error;
mod event;
mod journal;
mod key;
mod location;
mod model;
mod origin;
mod program;
pub mod schema;
mod sqlite;
mod store;
pub mod transfer;

pub use answer::{Best, Damage, KeySummary, Miss, Near, RunSummary};
pub use claim::{Claim, Claims};
pub use error::{Error, Result};
pub use event::{Applied, Event};
pub use journal::{Journal, Kept};
pub use key::{Key, Part};
pub use location::{default_path, location};
pub use model::{Declared, RunEnd, RunId, RunInfo, Trial, TrialId, Verification, now};
pub use origin::Origin;
pub use program::ProgramInfo;
pub use sqlite::{Collected, Collection, Options, SqliteStore};
pub use store::{RunFilter, Store};

use std::path::Path;

/// Opens the records at a path, or at the [usual place](location); makes them if there are none.
///
/// # Errors
/// If there is no usual place, or the file cannot be opened or is not a database of records.
pub fn open(path: Option<&Path>) -> Result<SqliteStore> {
    SqliteStore::open(&location(path)?, Options::default())
}

/// [`open`], but `None` if there are no records at that place: looking makes no files, and records that
/// cannot be written are opened to look at.
///
/// # Errors
/// As [`open`].
pub fn open_existing(path: Option<&Path>) -> Result<Option<SqliteStore>> {
    let path = location(path)?;
    match path.try_exists() {
        Ok(false) => Ok(None),
        _ => match SqliteStore::open(&path, Options::default()) {
            Err(Error::ReadOnly { .. } | Error::CannotOpen { .. }) => {
                SqliteStore::open_read_only(&path, &Options::default()).map(Some)
            }
            opened => opened.map(Some),
        },
    }
}
