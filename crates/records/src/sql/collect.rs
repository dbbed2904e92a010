//! Garbage collection: removes records that no lookup needs.

use std::collections::HashSet;

use serde::Serialize;

use super::SqlStore;
use super::database::{Access, Database, DatabaseExt};
use super::row::{Value, values};
use crate::codec;
use crate::error::{Error, Result};
use crate::schema::ELIGIBLE;

/// The most verifications to keep.
const MOST_VERIFIED: i64 = 100_000;

/// Trials per page.
const PAGE: i64 = 10_000;

/// Texts removed per statement.
const AT_ONCE: usize = 500;

/// The options of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// How many of the fastest trials of each key to keep, besides the declared winner.
    pub keep: usize,
    /// Only report what would be removed.
    pub dry_run: bool,
}

/// The result of a collection or a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// The number of keys with removed trials.
    pub keys: u64,
    /// The number of removed trials; their counts by kind stay.
    pub removed: u64,
    /// The number of trials that stay.
    pub kept: u64,
    /// The number of lines and reasons without references.
    pub texts: u64,
    /// The size of the file before.
    pub bytes_before: u64,
    /// The size of the file after; the same as before in a dry run.
    pub bytes_after: u64,
}

impl<D: Database> SqlStore<D> {
    pub(super) fn remove_all_but(&mut self, what: Collection) -> Result<Collected> {
        self.refuse_if_older()?;
        let db = &self.db;
        let bytes_before = db.bytes()?;
        db.begin(Access::Removing)?;
        let result = self.remove(what.keep);
        // A dry run does everything and rolls it back, so its report is exact.
        let mut collected = if what.dry_run {
            db.roll_back()?;
            result?
        } else {
            db.end(result)?
        };
        if !what.dry_run {
            match db.give_back() {
                // The rows are gone and their space is reused; the file shrinks next time.
                Err(Error::Busy { .. } | Error::Full { .. }) => {}
                result => result?,
            }
        }
        collected.bytes_before = bytes_before;
        collected.bytes_after = db.bytes()?;
        self.texts.forget();
        Ok(collected)
    }

    fn remove(&self, keep: usize) -> Result<Collected> {
        let db = &self.db;
        db.batch("DROP TABLE IF EXISTS kept; CREATE TEMPORARY TABLE kept (id BIGINT PRIMARY KEY)")?;
        let keys: Vec<i64> = db.all("SELECT id FROM keys", &[], |row| row.get(0))?;
        let fastest = format!(
            "INSERT INTO kept (id) SELECT id FROM trials WHERE key_id = $1 AND {ELIGIBLE}
             ORDER BY seconds, id LIMIT $2"
        );
        let keep = i64::try_from(keep).unwrap_or(i64::MAX);
        for key in &keys {
            db.execute(&fastest, values![*key, keep])?;
        }
        db.execute(
            "INSERT INTO kept (id) SELECT t.id FROM bests b
             JOIN trials t ON t.run_id = b.run_id AND t.number = b.number
             WHERE t.id NOT IN (SELECT id FROM kept)",
            &[],
        )?;
        let keys = "SELECT count(DISTINCT key_id) FROM trials
                    WHERE id NOT IN (SELECT id FROM kept)";
        let keys: i64 = db.one(keys, &[], |row| row.get(0))?.unwrap_or(0);
        db.execute(
            "INSERT INTO removed (key_id, kind, count)
             SELECT key_id, kind, count(*) FROM trials
             WHERE id NOT IN (SELECT id FROM kept) GROUP BY key_id, kind
             ON CONFLICT (key_id, kind) DO UPDATE SET count = removed.count + excluded.count",
            &[],
        )?;
        let removed =
            db.execute("DELETE FROM trials WHERE id NOT IN (SELECT id FROM kept)", &[])?;
        let kept: i64 = db.one("SELECT count(*) FROM trials", &[], |row| row.get(0))?.unwrap_or(0);
        let texts = self.remove_texts()?;
        db.batch("DROP TABLE kept")?;
        // Old verifications can be repeated.
        let old = "DELETE FROM verified WHERE verified <
                   (SELECT verified FROM verified ORDER BY verified DESC LIMIT 1 OFFSET $1)";
        db.execute(old, values![MOST_VERIFIED])?;
        // Other processes cache numbers of texts; this tells them to ask again.
        let next = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT)
                    WHERE name = 'generation'";
        db.execute(next, &[])?;
        Ok(Collected {
            keys: keys.cast_unsigned(),
            removed,
            kept: kept.cast_unsigned(),
            texts,
            bytes_before: 0,
            bytes_after: 0,
        })
    }

    /// Removes texts without references.
    fn remove_texts(&self) -> Result<u64> {
        let db = &self.db;
        let sql = "SELECT id, origin, detail, algorithm, schedule FROM trials
                   WHERE id > $1 ORDER BY id LIMIT $2";
        let mut used: HashSet<i64> = db.texts_of_others()?.into_iter().collect();
        // One page in memory at a time, since many trials may stay.
        let mut after = None;
        loop {
            let page = values![after.unwrap_or(i64::MIN), PAGE];
            let mut last = None;
            db.each(sql, page, &mut |row| {
                last = Some(row.get(0)?);
                used.insert(row.get(1)?);
                used.extend(row.get::<Option<i64>>(2)?);
                used.extend(row.get::<Option<i64>>(3)?);
                let lines = codec::decode(&row.get::<Vec<u8>>(4)?).unwrap_or_default();
                used.extend(lines.into_iter().map(u64::cast_signed));
                Ok(true)
            })?;
            match last {
                None => break,
                last => after = last,
            }
        }
        let all: Vec<i64> = db.all("SELECT id FROM texts", &[], |row| row.get(0))?;
        let unused: Vec<i64> = all.into_iter().filter(|id| !used.contains(id)).collect();
        // Many per statement, to query a server once for all of them.
        unused.chunks(AT_ONCE).try_fold(0, |sum, ids| {
            let places: Vec<String> = (1..=ids.len()).map(|at| format!("${at}")).collect();
            let sql = format!("DELETE FROM texts WHERE id IN ({})", places.join(", "));
            let ids: Vec<Value<'_>> = ids.iter().map(|id| Value::Int(*id)).collect();
            Ok(sum + db.execute(&sql, &ids)?)
        })
    }
}
