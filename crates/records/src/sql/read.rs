//! Reads records from rows.

use std::collections::{BTreeMap, HashMap};

use tensorwright_lang::precision::Precision;
use tensorwright_outcome::{Outcome, Timing};

use super::SqlStore;
use super::database::{Database, DatabaseExt};
use super::row::{Read, Row, values};
use crate::answer::{Best, Damage, KeySummary, RunSummary};
use crate::codec;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::model::{Declared, RunEnd, RunId, RunInfo, Trial, TrialId};
use crate::program::ProgramInfo;
use crate::schema::ELIGIBLE;
use crate::store::RunFilter;

/// The columns of a key, of `keys k` and `programs p`.
pub(super) const KEY: &str = "p.hash, p.family, k.target, k.threads, k.compiler, k.precision";

/// The number of these columns.
pub(super) const KEY_COLUMNS: usize = 6;

/// The join of `keys k` and `programs p`.
pub(super) const KEYS: &str = "keys k JOIN programs p ON p.id = k.program_id";

/// The columns of a program, of `programs p`.
pub(super) const PROGRAM: &str = "p.hash, p.family, p.def, p.sizes, p.text, p.flops, p.bytes";

/// The columns of a trial.
const TRIAL: &str = "number, origin, point, schedule, kind, cut, seconds, raw_seconds, spread, \
                     runs, roofline, detail, elapsed, algorithm";

/// The query for the fastest trials of a key, in the order of the index `trials_best`.
pub(super) fn fastest() -> String {
    format!(
        "SELECT run_id, number FROM trials WHERE key_id = $1 AND {ELIGIBLE}
         ORDER BY seconds, id LIMIT $2"
    )
}

/// The row of a key.
pub(super) fn key_row<D: Database>(db: &D, key: &Key) -> Result<Option<i64>> {
    let sql = "SELECT k.id FROM keys k JOIN programs p ON p.id = k.program_id
               WHERE p.hash = $1 AND k.target = $2 AND k.threads = $3 AND k.compiler = $4
                 AND k.precision = $5";
    let Key { program, target, threads, compiler, precision, .. } = key;
    let values = values![program, target, *threads, compiler, precision.name()];
    db.one(sql, values, |row| row.get(0))
}

/// The rows of a run and of its key.
pub(super) fn run_row<D: Database>(db: &D, run: &RunId) -> Result<Option<(i64, i64)>> {
    let sql = "SELECT id, key_id FROM runs WHERE uid = $1";
    db.one(sql, values![run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// The key in columns from `at` on.
pub(super) fn key(row: &Row, at: usize) -> Read<Key> {
    let precision: String = row.get(at + 5)?;
    Ok(Key {
        program: row.get(at)?,
        family: row.get(at + 1)?,
        target: row.get(at + 2)?,
        threads: row.get(at + 3)?,
        compiler: row.get(at + 4)?,
        // An unknown precision may have used any algorithm.
        precision: precision.parse().unwrap_or(Precision::Fast),
    })
}

/// The program in columns from `at` on.
pub(super) fn program_at(row: &Row, at: usize) -> Read<ProgramInfo> {
    Ok(ProgramInfo {
        hash: row.get(at)?,
        family: row.get(at + 1)?,
        def: row.get(at + 2)?,
        sizes: sizes(&row.get::<String>(at + 3)?),
        text: row.get(at + 4)?,
        flops: row.get(at + 5)?,
        bytes: row.get(at + 6)?,
    })
}

/// Parses sizes; empty if malformed.
fn sizes(text: &str) -> BTreeMap<String, i64> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Parses JSON; a string if malformed.
fn json(text: String) -> serde_json::Value {
    serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
}

/// A program by its hash.
pub(super) fn program<D: Database>(db: &D, hash: &str) -> Result<Option<ProgramInfo>> {
    let sql = format!("SELECT {PROGRAM} FROM programs p WHERE p.hash = $1");
    db.one(&sql, values![hash], |row| program_at(row, 0))
}

/// Trials to read per requested one: several have the same schedule, and damaged ones are skipped.
const SPARE: usize = 4;

/// The best of a key's row.
pub(super) fn best<D: Database>(store: &SqlStore<D>, key_row: i64) -> Result<Option<Best>> {
    Ok(ranked(store, key_row, 1)?.into_iter().next())
}

/// The best of a key's row and those after it, each schedule once.
pub(super) fn ranked<D: Database>(
    store: &SqlStore<D>,
    key_row: i64,
    limit: usize,
) -> Result<Vec<Best>> {
    let mut bests: Vec<Best> = winner(store, key_row)?.into_iter().collect();
    if bests.len() >= limit {
        return Ok(bests);
    }
    let rows = i64::try_from(limit.saturating_mul(SPARE)).unwrap_or(i64::MAX);
    let found: Vec<(i64, i64)> =
        store.db.all(&fastest(), values![key_row, rows], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (run_row, number) in found {
        let Some((id, trial)) = sound(store, run_row, number)? else { continue };
        if bests.iter().all(|best| best.trial.schedule != trial.schedule) {
            let seconds = trial.outcome.cost().unwrap_or(f64::INFINITY);
            bests.push(Best { id, trial, seconds, declared: None });
        }
        if bests.len() >= limit {
            break;
        }
    }
    Ok(bests)
}

/// The declared winner of a key's row; if its row is gone or damaged, the fastest of the others.
fn winner<D: Database>(store: &SqlStore<D>, key_row: i64) -> Result<Option<Best>> {
    let db = &store.db;
    let sql = "SELECT b.run_id, r.uid, b.number, b.seconds, b.against, b.declared, b.replaces
               FROM bests b JOIN runs r ON r.id = b.run_id WHERE b.key_id = $1";
    let winner = db.one(sql, values![key_row], |row| Ok((row.get(0)?, declared_at(row, 1)?)))?;
    let winner: Option<(i64, Declared)> = winner;
    let Some((run_row, declared)) = winner else { return Ok(None) };
    let found = sound(store, run_row, declared.trial.number.cast_signed())?;
    Ok(found.map(|(id, trial)| {
        let seconds = declared.seconds;
        Best { id, trial, seconds, declared: Some(declared) }
    }))
}

/// A usable trial. A damaged one is skipped and reported by [`damage`](crate::Store::damage).
pub(super) fn sound<D: Database>(
    store: &SqlStore<D>,
    run_row: i64,
    number: i64,
) -> Result<Option<(TrialId, Trial)>> {
    let uid = "SELECT uid FROM runs WHERE id = $1";
    let run: Option<String> = store.db.one(uid, values![run_row], |row| row.get(0))?;
    let Some(run) = run else { return Err(store.db.corrupt("a trial without a run")) };
    let id = TrialId { run: RunId::named(&run), number: number.cast_unsigned() };
    let sql = format!("SELECT {TRIAL} FROM trials WHERE run_id = $1 AND number = $2");
    let row = store.db.one(&sql, values![run_row, number], trial_row)?;
    Ok(row.and_then(|row| usable(store, &id, row)).map(|trial| (id, trial)))
}

/// The trial of a row; records damage.
fn usable<D: Database>(store: &SqlStore<D>, id: &TrialId, row: TrialRow) -> Option<Trial> {
    /// The most damage reports to keep.
    const MOST: usize = 100;
    match row.into_trial(store) {
        Ok(trial) => Some(trial),
        Err(error) => {
            let mut damage = store.damage.borrow_mut();
            let damaged = Damage { trial: id.clone(), error };
            if damage.len() < MOST && !damage.contains(&damaged) {
                damage.push(damaged);
            }
            None
        }
    }
}

/// The declaration in columns from `at` on.
fn declared_at(row: &Row, at: usize) -> Read<Declared> {
    let run = RunId::named(&row.get::<String>(at)?);
    Ok(Declared {
        trial: TrialId { run, number: row.get::<i64>(at + 1)?.cast_unsigned() },
        seconds: row.get(at + 2)?,
        against: json(row.get(at + 3)?),
        declared: row.get(at + 4)?,
        replaces: row.get::<Option<String>>(at + 5)?.and_then(|text| TrialId::parse(&text)),
    })
}

/// Every declaration.
pub(super) fn declared<D: Database>(store: &SqlStore<D>) -> Result<Vec<(Key, Declared)>> {
    let sql = format!(
        "SELECT {KEY}, r.uid, b.number, b.seconds, b.against, b.declared, b.replaces
         FROM bests b JOIN runs r ON r.id = b.run_id
         JOIN keys k ON k.id = b.key_id JOIN programs p ON p.id = k.program_id ORDER BY k.id"
    );
    store.db.all(&sql, &[], |row| Ok((key(row, 0)?, declared_at(row, KEY_COLUMNS)?)))
}

/// Every key with removed trials.
pub(super) fn removed<D: Database>(db: &D) -> Result<Vec<(Key, Vec<u64>)>> {
    let sql = format!(
        "SELECT {KEY}, x.kind, x.count FROM removed x
         JOIN keys k ON k.id = x.key_id JOIN programs p ON p.id = k.program_id ORDER BY k.id"
    );
    let rows =
        db.all(&sql, &[], |row| Ok((key(row, 0)?, row.get::<i64>(6)?, row.get::<i64>(7)?)))?;
    let mut keys: Vec<(Key, Vec<u64>)> = Vec::new();
    for (key, kind, count) in rows {
        if keys.last().is_none_or(|(last, _)| *last != key) {
            keys.push((key, vec![0; Outcome::KINDS.len()]));
        }
        let counts = keys.last_mut().map(|(_, counts)| counts);
        if let Some(place) = counts.and_then(|counts| counts.get_mut(kind as usize)) {
            *place = count.cast_unsigned();
        }
    }
    Ok(keys)
}

/// The columns of a trial.
struct TrialRow {
    number: i64,
    origin: i64,
    point: Vec<u8>,
    schedule: Vec<u8>,
    kind: i64,
    timing: Option<Timing>,
    detail: Option<i64>,
    elapsed: f64,
    algorithm: Option<i64>,
}

fn trial_row(row: &Row) -> Read<TrialRow> {
    let timing = match row.get::<Option<f64>>(6)? {
        None => None,
        Some(seconds) => Some(Timing {
            seconds,
            raw_seconds: row.get(7)?,
            spread: row.get(8)?,
            runs: row.get(9)?,
            roofline: row.get(10)?,
            cut: row.get::<i64>(5)? != 0,
        }),
    };
    Ok(TrialRow {
        number: row.get(0)?,
        origin: row.get(1)?,
        point: row.get(2)?,
        schedule: row.get(3)?,
        kind: row.get(4)?,
        timing,
        detail: row.get(11)?,
        elapsed: row.get(12)?,
        algorithm: row.get(13)?,
    })
}

impl TrialRow {
    fn into_trial<D: Database>(self, store: &SqlStore<D>) -> Result<Trial> {
        let (db, texts) = (&store.db, &store.texts);
        let corrupt = |what: &str| db.corrupt(format!("trial {}: {what}", self.number));
        let point: Option<Vec<u32>> = codec::decode(&self.point)
            .and_then(|values| values.into_iter().map(|value| value.try_into().ok()).collect());
        let outcome = match (self.kind, self.timing, self.detail) {
            (0, Some(timing), _) => Outcome::Measured(timing),
            (_, _, Some(detail)) => serde_json::from_str(&texts.text(db, detail)?)
                .map_err(|error| corrupt(&error.to_string()))?,
            _ => return Err(corrupt("no outcome")),
        };
        let algorithm = self.algorithm.map(|text| texts.text(db, text)).transpose()?;
        let algorithm = algorithm.map(|text| text.to_string()).unwrap_or_default();
        Ok(Trial {
            number: self.number.cast_unsigned(),
            origin: (*texts.text(db, self.origin)?).into(),
            algorithm,
            point: point.ok_or_else(|| corrupt("the point is not a list of numbers"))?,
            schedule: texts.joined(db, &self.schedule)?,
            outcome,
            elapsed: self.elapsed,
        })
    }
}

/// Trials of a run.
pub(super) fn trials<D: Database>(
    store: &SqlStore<D>,
    run: &RunId,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<Trial>> {
    let (row, _) = run_row(&store.db, run)?.ok_or_else(|| Error::UnknownRun(run.clone()))?;
    let mut after = after.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {TRIAL} FROM trials WHERE run_id = $1 AND number > $2 ORDER BY number LIMIT $3"
    );
    // A page is empty only at the end, even if all rows of one are damaged.
    loop {
        let rows = store.db.all(&sql, values![row, after, limit], trial_row)?;
        let Some(last) = rows.last() else { return Ok(Vec::new()) };
        after = last.number;
        let id = |row: &TrialRow| TrialId { run: run.clone(), number: row.number.cast_unsigned() };
        let trials = rows.into_iter().filter_map(|row| usable(store, &id(&row), row));
        let trials: Vec<Trial> = trials.collect();
        if !trials.is_empty() {
            return Ok(trials);
        }
    }
}

/// Runs, the latest first.
pub(super) fn runs<D: Database>(db: &D, filter: &RunFilter) -> Result<Vec<RunSummary>> {
    let key_wanted = match &filter.key {
        None => None,
        Some(key) => match key_row(db, key)? {
            None => return Ok(Vec::new()),
            row => row,
        },
    };
    let sql = format!(
        "SELECT {KEY}, p.def, p.sizes, r.uid, r.strategy, r.seed, r.space, r.meta, r.started,
                r.ended, r.status, (SELECT count(*) FROM trials t WHERE t.run_id = r.id)
         FROM runs r JOIN keys k ON k.id = r.key_id JOIN programs p ON p.id = k.program_id
         WHERE (CAST($1 AS BIGINT) IS NULL OR r.key_id = $1)
           AND (CAST($2 AS TEXT) IS NULL OR p.def = $2)
           AND (CAST($3 AS TEXT) IS NULL OR substr(r.uid, 1, length($3)) = $3)
         ORDER BY r.started DESC, r.id DESC LIMIT $4"
    );
    let limit = match filter.limit {
        0 => i64::MAX,
        limit => i64::try_from(limit).unwrap_or(i64::MAX),
    };
    db.all(&sql, values![key_wanted, filter.def.as_ref(), filter.id.as_ref(), limit], run_summary)
}

fn run_summary(row: &Row) -> Read<RunSummary> {
    let end = match row.get::<Option<i64>>(14)? {
        None => None,
        Some(ended) => {
            let status: Option<String> = row.get(15)?;
            Some(RunEnd { ended, status: status.unwrap_or_default() })
        }
    };
    Ok(RunSummary {
        key: key(row, 0)?,
        def: row.get(6)?,
        sizes: sizes(&row.get::<String>(7)?),
        info: RunInfo {
            id: RunId::named(&row.get::<String>(8)?),
            strategy: row.get(9)?,
            seed: row.get::<i64>(10)?.cast_unsigned(),
            space: row.get(11)?,
            meta: json(row.get(12)?),
            started: row.get(13)?,
        },
        end,
        trials: row.get::<i64>(16)?.cast_unsigned(),
    })
}

/// Every key with its results.
pub(super) fn keys<D: Database>(store: &SqlStore<D>) -> Result<Vec<KeySummary>> {
    let db = &store.db;
    // Grouped by run first: the index on runs and numbers answers that without the rows.
    let counts = "SELECT r.key_id, count(*), CAST(coalesce(sum(t.trials), 0) AS BIGINT)
                  FROM runs r
                  LEFT JOIN (SELECT run_id, count(*) AS trials FROM trials GROUP BY run_id) t
                    ON t.run_id = r.id GROUP BY r.key_id";
    let counts: HashMap<i64, (i64, i64)> = db
        .all(counts, &[], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
        .into_iter()
        .collect();
    let removed: HashMap<i64, i64> = db
        .all(
            "SELECT key_id, CAST(sum(count) AS BIGINT) FROM removed GROUP BY key_id",
            &[],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .into_iter()
        .collect();
    let sql = format!("SELECT k.id, {KEY}, {PROGRAM} FROM {KEYS} ORDER BY p.def, p.sizes, k.id");
    let rows: Vec<(i64, Key, ProgramInfo)> = db
        .all(&sql, &[], |row| Ok((row.get(0)?, key(row, 1)?, program_at(row, 1 + KEY_COLUMNS)?)))?;
    rows.into_iter()
        .map(|(row, key, program)| {
            let (runs, trials) = counts.get(&row).copied().unwrap_or_default();
            Ok(KeySummary {
                key,
                program,
                runs: runs.cast_unsigned(),
                trials: trials.cast_unsigned(),
                removed: removed.get(&row).copied().unwrap_or_default().cast_unsigned(),
                best: best(store, row)?,
            })
        })
        .collect()
}
