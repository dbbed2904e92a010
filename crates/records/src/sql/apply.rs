//! Writes events to rows in one transaction.

use super::database::{Access, Database, DatabaseExt};
use super::row::values;
use super::{SqlStore, read};
use crate::codec;
use crate::error::{Error, Result};
use crate::event::{Applied, Event};
use crate::key::Key;
use crate::model::{Declared, RunEnd, RunId, RunInfo, Trial, TrialId};
use crate::program::ProgramInfo;

/// Applies events in one transaction; retries after a conflict.
pub(super) fn apply<D: Database>(
    store: &mut SqlStore<D>,
    events: &[Event],
) -> Result<Vec<Applied>> {
    store.refuse_if_older()?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match apply_once(store, events) {
            Err(Error::Conflict { .. }) if attempts < D::ATTEMPTS => {}
            result => return result,
        }
    }
}

fn apply_once<D: Database>(store: &mut SqlStore<D>, events: &[Event]) -> Result<Vec<Applied>> {
    store.db.begin(Access::Adding)?;
    let result = apply_all(store, events);
    let result = store.db.end(result);
    if result.is_err() {
        // Cached rows may have been rolled back.
        store.texts.forget();
        store.runs.clear();
    }
    result
}

fn apply_all<D: Database>(store: &mut SqlStore<D>, events: &[Event]) -> Result<Vec<Applied>> {
    store.refresh()?;
    let valid: Vec<Result<Option<String>>> = events.iter().map(checked).collect();
    let trials = events.iter().zip(&valid).filter_map(|(event, valid)| match (event, valid) {
        (Event::Trial { trial, .. }, Ok(detail)) => Some((trial, detail.as_deref())),
        _ => None,
    });
    store.texts.learn(&store.db, trials.flat_map(|(trial, detail)| texts_of(trial, detail)))?;
    events
        .iter()
        .zip(valid)
        .map(|(event, valid)| {
            match valid.and_then(|detail| store.write(event, detail.as_deref())) {
                Ok(true) => Ok(Applied::Added),
                Ok(false) => Ok(Applied::Known),
                Err(error) if error.may_pass() => Err(error),
                Err(error) => Ok(Applied::Refused(error)),
            }
        })
        .collect()
}

/// Checks an event; returns the stored text of an outcome other than a time.
fn checked(event: &Event) -> Result<Option<String>> {
    event.validate()?;
    match event {
        Event::Trial { trial, .. } if trial.outcome.timing().is_none() => {
            let detail = serde_json::to_string(&trial.outcome);
            detail.map(Some).map_err(|error| Error::invalid("outcome", error.to_string()))
        }
        _ => Ok(None),
    }
}

/// The texts of a trial.
fn texts_of<'t>(trial: &'t Trial, detail: Option<&'t str>) -> impl Iterator<Item = &'t str> {
    let algorithm = Some(trial.algorithm.as_str()).filter(|text| !text.is_empty());
    let lines = trial.schedule.split_inclusive('\n');
    lines.chain([trial.origin.as_str()]).chain(algorithm).chain(detail)
}

impl<D: Database> SqlStore<D> {
    /// Writes an event; returns whether it was new.
    fn write(&mut self, event: &Event, detail: Option<&str>) -> Result<bool> {
        match event {
            Event::Program(program) => self.write_program(program),
            Event::Run { key, info } => self.write_run(key, info),
            Event::Trial { run, trial } => self.write_trial(run, trial, detail),
            Event::End { run, end } => self.write_end(run, end),
            Event::Best { key, best } => self.write_best(key, best),
            Event::Removed { key, counts } => self.write_removed(key, counts),
        }
    }

    /// The first name, sizes and text of a program stay.
    fn write_program(&mut self, program: &ProgramInfo) -> Result<bool> {
        let sql = "INSERT INTO programs (hash, family, def, sizes, text, flops, bytes)
                   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (hash) DO NOTHING";
        let ProgramInfo { hash, family, def, sizes, text, flops, bytes } = program;
        let sizes = serde_json::json!(sizes).to_string();
        let rows =
            self.db.execute(sql, values![hash, family, def, &sizes, text, *flops, *bytes])?;
        Ok(rows > 0)
    }

    fn write_run(&mut self, key: &Key, info: &RunInfo) -> Result<bool> {
        let key_row = self.key_row(key)?;
        let sql = "INSERT INTO runs (uid, key_id, strategy, seed, space, meta, started)
                   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (uid) DO NOTHING";
        let RunInfo { id, strategy, seed, space, meta, started } = info;
        let (id, seed, meta) = (id.as_str(), seed.cast_signed(), meta.to_string());
        let values = values![id, key_row, strategy, seed, space, &meta, *started];
        Ok(self.db.execute(sql, values)? > 0)
    }

    fn write_trial(&mut self, run: &RunId, trial: &Trial, detail: Option<&str>) -> Result<bool> {
        let (run_row, key_row) = self.run_row(run)?;
        let origin = self.texts.number(&self.db, trial.origin.as_str())?;
        let algorithm = Some(&trial.algorithm).filter(|text| !text.is_empty());
        let algorithm = algorithm.map(|text| self.texts.number(&self.db, text)).transpose()?;
        let schedule = self.texts.lines(&self.db, &trial.schedule)?;
        let detail = detail.map(|text| self.texts.number(&self.db, text)).transpose()?;
        let timing = trial.outcome.timing();
        let sql = "INSERT INTO trials (run_id, number, key_id, origin, point, schedule, kind, cut,
                     seconds, raw_seconds, spread, runs, roofline, detail, elapsed,
                     algorithm)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
                   ON CONFLICT (run_id, number) DO NOTHING";
        let point = codec::encode_point(&trial.point);
        let values = values![
            run_row,
            trial.number.cast_signed(),
            key_row,
            origin,
            point.as_slice(),
            schedule.as_slice(),
            trial.outcome.kind_index() as i64,
            i64::from(timing.is_some_and(|timing| timing.cut)),
            timing.map(|timing| timing.seconds),
            timing.map(|timing| timing.raw_seconds),
            timing.map(|timing| timing.spread),
            timing.map(|timing| timing.runs),
            timing.and_then(|timing| timing.roofline),
            detail,
            trial.elapsed,
            algorithm,
        ];
        if self.db.execute(sql, values)? > 0 {
            return Ok(true);
        }
        // Repeating a trial is fine; another trial under its number must not be lost.
        match read::sound(self, run_row, trial.number.cast_signed())? {
            Some((_, kept)) if is_same(&kept, trial) => Ok(false),
            _ => Err(Error::Taken(TrialId { run: run.clone(), number: trial.number })),
        }
    }

    fn write_end(&mut self, run: &RunId, end: &RunEnd) -> Result<bool> {
        let (run_row, _) = self.run_row(run)?;
        let sql = "UPDATE runs SET ended = $1, status = $2 WHERE id = $3
                   AND (ended IS NULL OR ended < $1)";
        Ok(self.db.execute(sql, values![end.ended, &end.status, run_row])? > 0)
    }

    /// A best is replaced only by one that was measured with it.
    fn write_best(&mut self, key: &Key, best: &Declared) -> Result<bool> {
        let (run_row, run_key) = self.run_row(&best.trial.run)?;
        if read::key_row(&self.db, key)? != Some(run_key) {
            return Err(Error::invalid(best.trial.to_string(), "belongs to another key"));
        }
        let number = best.trial.number.cast_signed();
        let trial = "SELECT kind, cut FROM trials WHERE run_id = $1 AND number = $2";
        let found: Option<(i64, i64)> =
            self.db.one(trial, values![run_row, number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        match found {
            None => return Err(Error::UnknownTrial(best.trial.clone())),
            Some((0, 0)) => {}
            Some((0, _)) => {
                return Err(Error::invalid(best.trial.to_string(), "was timed only in part"));
            }
            Some(_) => return Err(Error::invalid(best.trial.to_string(), "was not measured")),
        }
        // Keep others from declaring a best of this key meanwhile.
        let lock = format!("SELECT id FROM keys WHERE id = $1{}", D::FOR_UPDATE);
        self.db.one(&lock, values![run_key], |row| row.get::<i64>(0))?;
        match self.current_best(run_key)? {
            // The same declaration again, or an earlier one of the same trial.
            Some((current, declared)) if current == best.trial && declared >= best.declared => {
                return Ok(false);
            }
            Some((current, _))
                if current != best.trial && best.replaces.as_ref() != Some(&current) =>
            {
                return Err(Error::Outrun(current));
            }
            _ => {}
        }
        let sql = "INSERT INTO bests (key_id, run_id, number, seconds, against, declared, replaces)
                   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key_id) DO UPDATE SET
                     run_id = excluded.run_id, number = excluded.number,
                     seconds = excluded.seconds, against = excluded.against,
                     declared = excluded.declared, replaces = excluded.replaces";
        let (against, replaces) =
            (best.against.to_string(), best.replaces.as_ref().map(TrialId::to_word));
        let values = values![
            run_key,
            run_row,
            number,
            best.seconds,
            &against,
            best.declared,
            replaces.as_ref()
        ];
        Ok(self.db.execute(sql, values)? > 0)
    }

    /// The declared best of a key and its time, unless its trial is gone or damaged.
    fn current_best(&self, key_row: i64) -> Result<Option<(TrialId, i64)>> {
        let sql = "SELECT run_id, number, declared FROM bests WHERE key_id = $1";
        let current: Option<(i64, i64, i64)> = self
            .db
            .one(sql, values![key_row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let Some((run_row, number, declared)) = current else { return Ok(None) };
        let trial = read::sound(self, run_row, number)?;
        Ok(trial.map(|(id, _)| (id, declared)))
    }

    /// Counts imported twice count once: the larger one stays.
    fn write_removed(&mut self, key: &Key, counts: &[u64]) -> Result<bool> {
        let key_row = self.key_row(key)?;
        let sql = "INSERT INTO removed (key_id, kind, count) VALUES ($1, $2, $3)
                   ON CONFLICT (key_id, kind) DO UPDATE SET count = excluded.count
                   WHERE excluded.count > removed.count";
        let mut changed = 0;
        for (kind, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            changed += self.db.execute(sql, values![key_row, kind as i64, count.cast_signed()])?;
        }
        Ok(changed > 0)
    }

    /// The row of a key, created if needed. Its program must be known.
    fn key_row(&mut self, key: &Key) -> Result<i64> {
        if let Some(row) = read::key_row(&self.db, key)? {
            return Ok(row);
        }
        let program = "SELECT id FROM programs WHERE hash = $1";
        let program: Option<i64> = self.db.one(program, values![&key.program], |row| row.get(0))?;
        let unknown = || Error::invalid("program", format!("{} is not known", key.program));
        let sql = "INSERT INTO keys (program_id, target, threads, compiler, precision)
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING id";
        let program = program.ok_or_else(unknown)?;
        let Key { target, threads, compiler, precision, .. } = key;
        let values = values![program, target, *threads, compiler, precision.name()];
        if let Some(row) = self.db.one(sql, values, |row| row.get(0))? {
            return Ok(row);
        }
        // Another writer has inserted it.
        let row = read::key_row(&self.db, key)?;
        row.ok_or_else(|| self.db.corrupt("a key got no number"))
    }

    /// The rows of a run and of its key.
    fn run_row(&mut self, run: &RunId) -> Result<(i64, i64)> {
        if let Some(rows) = self.runs.get(run) {
            return Ok(*rows);
        }
        let rows = read::run_row(&self.db, run)?.ok_or_else(|| Error::UnknownRun(run.clone()))?;
        self.runs.insert(run.clone(), rows);
        Ok(rows)
    }
}

/// Whether two trials are the same. Numbers that went through text may differ in their last digit.
fn is_same(kept: &Trial, trial: &Trial) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
    let seconds = |trial: &Trial| trial.outcome.cost().unwrap_or_default();
    kept.schedule == trial.schedule
        && kept.algorithm == trial.algorithm
        && kept.point == trial.point
        && kept.outcome.kind() == trial.outcome.kind()
        && close(seconds(kept), seconds(trial))
        && close(kept.elapsed, trial.elapsed)
}
