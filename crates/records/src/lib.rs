//! The database of tuning records: every outcome of every run.
//!
//! An outcome is committed at once and is on disk when [`Store::insert`] returns. Records live in
//! one SQLite file shared by processes, or on a PostgreSQL server shared by machines (feature
//! `postgres`); [`open`] opens either.
//!
//! ```
//! use tensorwright_records::{Key, StoreOptions, ProgramInfo, RunInfo, SqliteStore, Store, Trial};
//! use tensorwright_outcome::{Outcome, Timing};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("records.sqlite3");
//!
//! let mut store = SqliteStore::open(&path, StoreOptions::default())?;
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
//! | `program.rs`, `key.rs`, `model.rs` | records and their keys |
//! | `answer.rs` | results of queries |
//! | `store.rs` | [`Store`], the interface |
//! | `schema.rs` | the tables |
//! | `sql/` | [`SqlStore`]: the statements, the same for every database |
//! | `sqlite/`, `postgres/` | the connections: [`SqliteStore`], `PostgresStore` |
//! | `location.rs`, `default_location.rs`, `open.rs` | the place of records, and opening them |
//! | `footprint.rs` | [`Footprint`]: the files of records on this disk |
//! | `journal.rs` | [`Journal`], a writer that loses nothing when the database fails |
//! | `claim.rs` | [`Claim`]: a lock on a run for the life of a process |
//! | `transfer/` | export and import |

mod answer;
mod claim;
mod codec;
mod default_location;
mod error;
mod event;
mod footprint;
mod journal;
mod key;
mod location;
mod model;
mod open;
mod origin;
#[cfg(feature = "postgres")]
pub mod postgres;
mod program;
pub mod schema;
mod sql;
mod sqlite;
mod store;
mod store_options;
pub mod transfer;

pub use answer::{Best, Damage, KeySummary, Miss, Near, RunSummary};
pub use claim::{Claim, Claims};
pub use codec::{decode_point, encode_point};
pub use default_location::{default_path, set_default_location};
pub use error::{Error, FLEET_FEATURE, Result};
pub use event::{Applied, Event};
pub use footprint::{Footprint, KeptFile};
pub use journal::{Journal, Kept};
pub use key::{Key, Part};
pub use location::{Location, Url};
pub use model::{Declared, RunEnd, RunId, RunInfo, Trial, TrialId, Verification, now};
pub use open::{AnyStore, open, open_at, open_existing};
pub use origin::Origin;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use program::ProgramInfo;
pub use sql::{Collected, Collection, SqlStore};
pub use sqlite::SqliteStore;
pub use store::{RunFilter, Store};
pub use store_options::StoreOptions;
