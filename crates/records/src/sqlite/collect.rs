//! Removing records that nobody will look for.

use std::collections::HashSet;

use rusqlite::params;
use serde::Serialize;

use super::SqliteStore;
use crate::codec;
use crate::error::{Error, Result};
use crate::schema::ELIGIBLE;

/// Verifications that are kept.
const MOST_VERIFIED: i64 = 100_000;

/// What to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// The fastest trials of each key that stay, besides the declared winner.
    pub keep: usize,
    /// Only say what would be removed.
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// The keys of which trials were removed.
    pub keys: u64,
    /// The trials that were removed; how many of which kind stays known.
    pub removed: u64,
    /// The trials that stay.
    pub kept: u64,
    /// Lines and reasons that nothing refers to any more.
    pub texts: u64,
    /// The size of the file before.
    pub bytes_before: u64,
    /// The size of the file after; the same as before in a dry run.
    pub bytes_after: u64,
}

impl SqliteStore {
    /// Removes all trials but the fastest of each key and the declared winners, and gives the space
    /// back. Runs, programs, keys and counts by outcome stay.
    ///
    /// # Errors
    /// If the database cannot be written; then nothing is removed.
    pub fn collect(&mut self, what: Collection) -> Result<Collected> {
        if self.is_older {
            return Err(Error::ReadOnly { path: self.path().to_owned() });
        }
        let bytes_before = self.bytes()?;
        let db = &self.db;
        db.begin()?;
        let result = self.remove(what.keep);
        // A dry run does everything and takes it back: what it says is what would happen.
        let mut collected = if what.dry_run {
            db.batch("ROLLBACK")?;
            result?
        } else {
            db.end(result)?
        };
        if !what.dry_run {
            match db.batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)") {
                // The rows are gone and their space is used again; the file shrinks next time.
                Err(Error::Busy { .. } | Error::Full { .. }) => {}
                result => result?,
            }
        }
        collected.bytes_before = bytes_before;
        collected.bytes_after = self.bytes()?;
        self.texts.forget();
        Ok(collected)
    }

    fn remove(&self, keep: usize) -> Result<Collected> {
        let db = &self.db;
        db.batch(
            "DROP TABLE IF EXISTS temp.kept; CREATE TEMPORARY TABLE kept (id BIGINT PRIMARY KEY)",
        )?;
        let keys: Vec<i64> = db.all("SELECT id FROM keys", [], |row| row.get(0))?;
        let fastest = format!(
            "INSERT INTO kept (id) SELECT id FROM trials WHERE key_id = $1 AND {ELIGIBLE}
             ORDER BY seconds, id LIMIT $2"
        );
        let keep = i64::try_from(keep).unwrap_or(i64::MAX);
        for key in &keys {
            db.execute(&fastest, params![key, keep])?;
        }
        db.execute(
            "INSERT INTO kept (id) SELECT t.id FROM bests b
             JOIN trials t ON t.run_id = b.run_id AND t.number = b.number
             WHERE t.id NOT IN (SELECT id FROM kept)",
            [],
        )?;
        let keys = "SELECT count(DISTINCT key_id) FROM trials
                    WHERE id NOT IN (SELECT id FROM kept)";
        let keys: i64 = db.one(keys, [], |row| row.get(0))?.unwrap_or(0);
        db.execute(
            "INSERT INTO removed (key_id, kind, count)
             SELECT key_id, kind, count(*) FROM trials
             WHERE id NOT IN (SELECT id FROM kept) GROUP BY key_id, kind
             ON CONFLICT (key_id, kind) DO UPDATE SET count = removed.count + excluded.count",
            [],
        )?;
        let removed = db.execute("DELETE FROM trials WHERE id NOT IN (SELECT id FROM kept)", [])?;
        let kept: i64 = db.one("SELECT count(*) FROM trials", [], |row| row.get(0))?.unwrap_or(0);
        let texts = self.remove_texts()?;
        db.batch("DROP TABLE temp.kept")?;
        // What was not verified lately can be verified again.
        let old = "DELETE FROM verified WHERE verified <
                   (SELECT verified FROM verified ORDER BY verified DESC LIMIT 1 OFFSET $1)";
        db.execute(old, [MOST_VERIFIED])?;
        // Other processes remember numbers of texts; this tells them to ask again.
        let next = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT)
                    WHERE name = 'generation'";
        db.execute(next, [])?;
        Ok(Collected {
            keys: keys.cast_unsigned(),
            removed: removed as u64,
            kept: kept.cast_unsigned(),
            texts,
            bytes_before: 0,
            bytes_after: 0,
        })
    }

    /// Removes the texts that no trial refers to.
    fn remove_texts(&self) -> Result<u64> {
        let db = &self.db;
        let sql = "SELECT origin, detail, schedule, algorithm FROM trials";
        let mut used: HashSet<i64> = HashSet::new();
        // Row by row: as many trials may stay as there are.
        db.all(sql, [], |row| {
            let lines = codec::decode(&row.get::<_, Vec<u8>>(2)?).unwrap_or_default();
            used.extend(lines.into_iter().map(u64::cast_signed));
            used.insert(row.get(0)?);
            used.extend(row.get::<_, Option<i64>>(1)?);
            used.extend(row.get::<_, Option<i64>>(3)?);
            Ok(())
        })?;
        let all: Vec<i64> = db.all("SELECT id FROM texts", [], |row| row.get(0))?;
        let unused = all.into_iter().filter(|id| !used.contains(id));
        unused
            .map(|id| db.execute("DELETE FROM texts WHERE id = $1", [id]))
            .try_fold(0, |sum, rows| Ok(sum + rows? as u64))
    }
}
