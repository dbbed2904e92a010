//! [`SqliteStore`]: records in one file that several processes share.
//!
//! Parameters of queries are `$1` and so on, and first appear in their order.

mod apply;
mod collect;
mod db;
mod holders;
mod near;
mod read;
mod texts;
mod verified;

pub use collect::{Collected, Collection};
pub(crate) use holders::holders;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use crate::answer::{Best, Damage, KeySummary, Miss, Near, RunSummary};
use crate::error::{Error, Result};
use crate::event::{Applied, Event};
use crate::key::Key;
use crate::model::{Declared, RunId, Trial, Verification};
use crate::program::ProgramInfo;
use crate::schema;
use crate::store::{RunFilter, Store};
use db::Db;
use texts::Texts;

/// How a file is opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How long to wait for other processes that write.
    pub busy_timeout: Duration,
    /// The size that the file may not exceed.
    pub max_bytes: Option<u64>,
    /// Whether a commit waits for the disk, so that it outlasts a loss of power. Without that it
    /// still outlasts the end of the process.
    pub durable: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), max_bytes: None, durable: true }
    }
}

/// Records in one SQLite file.
pub struct SqliteStore {
    db: Db,
    texts: Texts,
    /// The rows of runs and of their keys.
    runs: HashMap<RunId, (i64, i64)>,
    /// The value of `generation` that the two above belong to.
    generation: i64,
    /// What was left out of answers.
    damage: RefCell<Vec<Damage>>,
    /// Whether it is of an earlier version and cannot be written; views show it as one of this version.
    is_older: bool,
}

impl SqliteStore {
    /// Opens a file of records; makes it, and its directory, if there is none.
    ///
    /// # Errors
    /// If the file cannot be opened, is something else, is damaged or comes from a newer version.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let db = Db::open(path, &options)?;
        // Who the file belongs to is asked before anything about it is changed.
        let version = version(&db)?;
        let synchronous = if options.durable { "FULL" } else { "NORMAL" };
        // SQLite does not wait for others when it changes the mode of a file.
        db.patiently(|| db.batch("PRAGMA journal_mode = WAL"))?;
        // Only `collect` removes rows, and it removes none that others refer to.
        db.batch(&format!("PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = OFF"))?;
        if let Some(bytes) = options.max_bytes {
            let page: i64 = db.one("PRAGMA page_size", [], |row| row.get(0))?.unwrap_or(4096);
            let pages = bytes / page.max(1).cast_unsigned();
            db.batch(&format!("PRAGMA max_page_count = {}", pages.max(1)))?;
        }
        match version {
            None => create(&db)?,
            Some(version) if version < schema::VERSION => match migrate(&db) {
                // An older file that cannot be written is read as it is.
                Err(Error::ReadOnly { .. } | Error::Full { .. }) => {}
                result => result?,
            },
            Some(_) => {}
        }
        Self::new(db)
    }

    /// Opens a file of records to look at, where neither it nor anything beside it can be written.
    ///
    /// # Errors
    /// If the file cannot be opened, is something else, is damaged or comes from a newer version.
    pub fn open_read_only(path: &Path, options: &Options) -> Result<Self> {
        let db = Db::open_read_only(path, options)?;
        match version(&db)? {
            Some(_) => Self::new(db),
            None => Err(Error::NotADatabase { path: path.to_owned() }),
        }
    }

    fn new(db: Db) -> Result<Self> {
        let (texts, runs, damage) = (Texts::default(), HashMap::new(), RefCell::default());
        let version = version(&db)?.unwrap_or(schema::VERSION);
        let is_older = version < schema::VERSION;
        if is_older {
            db.batch("PRAGMA temp_store = MEMORY")?;
            schema::views(version).iter().try_for_each(|sql| db.batch(sql))?;
        }
        Ok(Self { db, texts, runs, generation: 0, damage, is_older })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.db.path()
    }

    /// The size of the database in bytes, without its log.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn bytes(&self) -> Result<u64> {
        let pragma = |sql: &str| -> Result<u64> {
            Ok(self.db.one(sql, [], |row| row.get::<_, i64>(0))?.unwrap_or(0).cast_unsigned())
        };
        Ok(pragma("PRAGMA page_count")?.saturating_mul(pragma("PRAGMA page_size")?))
    }

    /// Waits for other processes as long as this from now on.
    pub(crate) fn set_patience(&mut self, patience: Duration) -> Result<()> {
        self.db.set_patience(patience)
    }

    /// How the database finds the fastest trial of a key: the plan of that query, in SQLite's words.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn plan_of_best(&self) -> Result<String> {
        let sql = format!("EXPLAIN QUERY PLAN {}", read::fastest());
        let steps: Vec<String> = self.db.all(&sql, [1, 1], |row| row.get(3))?;
        Ok(steps.join("\n"))
    }

    /// Notes that rows were removed; whoever remembers rows asks for this number first.
    fn refresh(&mut self) -> Result<()> {
        let generation = generation(&self.db)?;
        if generation != self.generation {
            self.texts.forget();
            self.runs.clear();
            self.generation = generation;
        }
        Ok(())
    }
}

/// The version of the schema of a file; `None` if it is new.
fn version(db: &Db) -> Result<Option<i64>> {
    let tables = "SELECT count(*), sum(name = 'meta') FROM sqlite_master WHERE type = 'table'";
    let (tables, ours): (i64, Option<i64>) =
        db.one(tables, [], |row| Ok((row.get(0)?, row.get(1)?)))?.unwrap_or_default();
    if tables == 0 {
        return Ok(None);
    }
    let foreign = || Error::Foreign { path: db.path().to_owned() };
    if ours != Some(1) {
        return Err(foreign());
    }
    let sql = "SELECT value FROM meta WHERE name = 'tensorwright-schema'";
    let text: Option<String> = match db.one(sql, [], |row| row.get(0)) {
        // Another program's `meta` has other columns.
        Err(Error::Database { .. }) => return Err(foreign()),
        other => other?,
    };
    let found: i64 = text.and_then(|text| text.parse().ok()).ok_or_else(foreign)?;
    if found > schema::VERSION {
        return Err(Error::Newer { path: db.path().to_owned(), found, known: schema::VERSION });
    }
    Ok(Some(found))
}

/// Makes the tables, unless another process has done so meanwhile.
fn create(db: &Db) -> Result<()> {
    db.transaction(|| {
        if version(db)?.is_some() {
            return Ok(());
        }
        schema::statements().iter().try_for_each(|sql| db.batch(sql))?;
        let meta = "INSERT INTO meta (name, value) VALUES ($1, $2)";
        db.execute(meta, ["tensorwright-schema", &schema::VERSION.to_string()])?;
        db.execute(meta, ["generation", "0"])?;
        Ok(())
    })
}

/// Brings the tables up to date, unless another process has done so meanwhile.
fn migrate(db: &Db) -> Result<()> {
    db.transaction(|| {
        let from = version(db)?.unwrap_or(schema::VERSION);
        schema::migration(from).iter().try_for_each(|sql| db.batch(sql))?;
        let sql = "UPDATE meta SET value = $1 WHERE name = 'tensorwright-schema'";
        db.execute(sql, [schema::VERSION.to_string()])?;
        Ok(())
    })
}

fn generation(db: &Db) -> Result<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'generation'";
    let text: Option<String> = db.one(sql, [], |row| row.get(0))?;
    text.and_then(|text| text.parse().ok()).ok_or_else(|| db.corrupt("it has no generation"))
}

impl Store for SqliteStore {
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
