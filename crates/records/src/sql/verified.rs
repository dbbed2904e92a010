//! Verdicts of installations on schedules.

use super::database::{Database, DatabaseExt};
use super::row::values;
use super::texts;
use crate::error::Result;
use crate::model::{Verification, now};

/// The verdict, if there is one.
pub(super) fn look_up<D: Database>(db: &D, what: &Verification) -> Result<Option<bool>> {
    let sql = "SELECT passed FROM verified WHERE program = $1 AND schedule = $2 AND target = $3
               AND threads = $4 AND compiler = $5 AND installation = $6";
    let Verification { key, schedule, installation } = what;
    let schedule = texts::hex(schedule);
    let values =
        values![&key.program, &schedule, &key.target, key.threads, &key.compiler, installation];
    let found: Option<i64> = db.one(sql, values, |row| row.get(0))?;
    Ok(found.map(|passed| passed != 0))
}

/// Stores a verdict. Concurrent verdicts agree, or the failure stays.
pub(super) fn note<D: Database>(db: &D, what: &Verification, passed: bool) -> Result<()> {
    let sql = "INSERT INTO verified
                 (program, schedule, target, threads, compiler, installation, passed, verified)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
               ON CONFLICT (program, schedule, target, threads, compiler, installation)
               DO UPDATE SET passed = excluded.passed, verified = excluded.verified
               WHERE excluded.passed < verified.passed";
    let Verification { key, schedule, installation } = what;
    let schedule = texts::hex(schedule);
    let values = values![
        &key.program,
        &schedule,
        &key.target,
        key.threads,
        &key.compiler,
        installation,
        i64::from(passed),
        now()
    ];
    db.execute(sql, values).map(|_| ())
}
