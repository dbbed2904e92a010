//! [`SqlStore`]: records in tables, with the same SQL for every database.
//!
//! | where | what |
//! | --- | --- |
//! | `database.rs` | [`Database`]: the connection, and all differences between databases |
//! | `row.rs` | values and rows |
//! | `apply.rs` | writing: events to rows |
//! | `read.rs`, `near.rs`, `verified.rs` | reading: rows to records |
//! | `texts.rs` | texts, stored once each |
//! | `collect.rs` | garbage collection |

mod apply;
mod collect;
pub(crate) mod database;
mod near;
mod read;
pub(crate) mod row;
mod texts;
mod verified;

pub use collect::{Collected, Collection};
pub(crate) use database::{Access, Database};

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::answer::{Best, Damage, KeySummary, Miss, Near, RunSummary};
use crate::error::{Error, Result};
use crate::event::{Applied, Event};
use crate::key::Key;
use crate::location::Location;
use crate::model::{Declared, RunId, Trial, Verification};
use crate::program::ProgramInfo;
use crate::schema;
use crate::store::{RunFilter, Store};
use database::DatabaseExt as _;
use row::values;
use texts::Texts;

/// Records in the tables of a database: [`crate::SqliteStore`] is one.
pub struct SqlStore<D> {
    pub(crate) db: D,
    texts: Texts,
    /// The rows of runs and of their keys.
    runs: HashMap<RunId, (i64, i64)>,
    /// The `generation` of the two caches above.
    generation: i64,
    /// Damaged records that were skipped.
    damage: RefCell<Vec<Damage>>,
    /// Whether it is an unwritable older version; views make it look like this version.
    is_older: bool,
}

impl<D: Database> SqlStore<D> {
    /// A store on a connection whose tables exist.
    pub(crate) fn on(db: D, is_older: bool) -> Self {
        let (texts, runs, damage) = (Texts::default(), HashMap::new(), RefCell::default());
        Self { db, texts, runs, generation: 0, damage, is_older }
    }

    /// Drops caches if rows were removed; call this before using cached rows.
    fn refresh(&mut self) -> Result<()> {
        let generation = generation(&self.db)?;
        if generation != self.generation {
            self.texts.forget();
            self.runs.clear();
            self.generation = generation;
        }
        Ok(())
    }

    fn refuse_if_older(&self) -> Result<()> {
        let at = self.db.location();
        if self.is_older { Err(Error::ReadOnly { at: at.clone() }) } else { Ok(()) }
    }
}

/// The version of the tables; `None` if there are none.
pub(crate) fn version(db: &impl Database) -> Result<Option<i64>> {
    let (tables, has_meta) = db.tables()?;
    if tables == 0 {
        return Ok(None);
    }
    let foreign = || Error::Foreign { at: db.location().clone() };
    if !has_meta {
        return Err(foreign());
    }
    let sql = "SELECT value FROM meta WHERE name = 'tensorwright-schema'";
    let text: Option<String> = match db.one(sql, &[], |row| row.get(0)) {
        // The `meta` of another program has other columns.
        Err(Error::Database { .. }) => return Err(foreign()),
        other => other?,
    };
    let found: i64 = text.and_then(|text| text.parse().ok()).ok_or_else(foreign)?;
    if found > schema::VERSION {
        let at = db.location().clone();
        return Err(Error::Newer { at, found, known: schema::VERSION });
    }
    Ok(Some(found))
}

/// Creates the tables, unless another process has done so meanwhile.
pub(crate) fn create(db: &impl Database) -> Result<()> {
    db.transaction(Access::Making, || {
        if version(db)?.is_some() {
            return Ok(());
        }
        schema::statements().iter().try_for_each(|sql| db.batch(&db.words(sql)))?;
        let meta = "INSERT INTO meta (name, value) VALUES ($1, $2)";
        db.execute(meta, values!["tensorwright-schema", &schema::VERSION.to_string()])?;
        db.execute(meta, values!["generation", "0"])?;
        Ok(())
    })
}

/// Migrates the tables, unless another process has done so meanwhile.
pub(crate) fn migrate(db: &impl Database) -> Result<()> {
    db.transaction(Access::Removing, || {
        let from = version(db)?.unwrap_or(schema::VERSION);
        schema::migration(from).iter().try_for_each(|sql| db.batch(&db.words(sql)))?;
        let sql = "UPDATE meta SET value = $1 WHERE name = 'tensorwright-schema'";
        db.execute(sql, values![&schema::VERSION.to_string()])?;
        Ok(())
    })
}

fn generation(db: &impl Database) -> Result<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'generation'";
    let text: Option<String> = db.one(sql, &[], |row| row.get(0))?;
    text.and_then(|text| text.parse().ok()).ok_or_else(|| db.corrupt("it has no generation"))
}

impl<D: Database> Store for SqlStore<D> {
    fn location(&self) -> &Location {
        self.db.location()
    }

    fn bytes(&self) -> Result<u64> {
        self.db.bytes()
    }

    fn plan_of_best(&self) -> Result<String> {
        self.db.plan(&read::fastest())
    }

    fn set_patience(&mut self, patience: Duration) -> Result<()> {
        self.db.set_patience(patience)
    }

    fn collect(&mut self, what: Collection) -> Result<Collected> {
        self.remove_all_but(what)
    }

    fn apply(&mut self, events: &[Event]) -> Result<Vec<Applied>> {
        apply::apply(self, events)
    }

    fn best(&self, key: &Key) -> Result<Option<Best>> {
        read::key_row(&self.db, key)?.map_or(Ok(None), |row| read::best(self, row))
    }

    fn ranked(&self, key: &Key, limit: usize) -> Result<Vec<Best>> {
        read::key_row(&self.db, key)?.map_or(Ok(Vec::new()), |row| read::ranked(self, row, limit))
    }

    fn verified(&self, what: &Verification) -> Result<Option<bool>> {
        verified::look_up(&self.db, what)
    }

    fn note_verified(&self, what: &Verification, passed: bool) -> Result<()> {
        verified::note(&self.db, what, passed)
    }

    fn damage(&self) -> Vec<Damage> {
        self.damage.take()
    }

    fn nearest(&self, key: &Key, sizes: &BTreeMap<String, i64>, limit: usize) -> Result<Vec<Near>> {
        near::nearest(self, key, sizes, limit)
    }

    fn why_miss(&self, key: &Key) -> Result<Vec<Miss>> {
        near::why_miss(self, key)
    }

    fn keys(&self) -> Result<Vec<KeySummary>> {
        read::keys(self)
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>> {
        read::runs(&self.db, filter)
    }

    fn trials(&self, run: &RunId, after: Option<u64>, limit: usize) -> Result<Vec<Trial>> {
        read::trials(self, run, after, limit)
    }

    fn program(&self, hash: &str) -> Result<Option<ProgramInfo>> {
        read::program(&self.db, hash)
    }

    fn declared(&self) -> Result<Vec<(Key, Declared)>> {
        read::declared(self)
    }

    fn removed(&self) -> Result<Vec<(Key, Vec<u64>)>> {
        read::removed(&self.db)
    }
}
