//! The driver's requests: take over a run, read its history, end it.

use std::time::Duration;

use tensorwright_outcome::Outcome;
use tensorwright_records::postgres::ToSql;
use tensorwright_records::{Error, Key, Origin, Result, RunId, RunInfo, TrialId};

use crate::fleet::{CompletionStatus, Fleet};
use crate::item::Item;
use crate::lease::{ItemOutcome, Lease, WorkerId};
use crate::row::Row;

/// The right to add items to a run, which is lost when another process takes the run over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The run.
    pub run: RunId,
    token: String,
}

impl Driver {
    /// A driver of a run that does not exist yet.
    #[must_use]
    pub fn nobody(run: &RunId) -> Self {
        Self { run: run.clone(), token: String::new() }
    }
}

/// The server's answer to a driver's heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DriverStatus {
    /// Active workers of the class.
    pub workers: u32,
    /// The roofline's lower bound on the reference machine, in seconds; `None` until a worker has
    /// tried the program.
    pub roof: Option<f64>,
    /// The peaks of that machine: GFLOP/s and GB/s.
    pub peaks: (f64, f64),
    /// Whether the run was cancelled or its time is over.
    pub is_over: bool,
}

/// An item of a run with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct PastItem {
    /// The item.
    pub item: Item,
    /// Its outcome, if known.
    pub outcome: Option<ItemOutcome>,
    /// Whether it is finals rather than a candidate.
    pub is_finals: bool,
}

/// The declared best of a run's key.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredBest {
    /// The trial.
    pub trial: TrialId,
    /// Its seconds in the finals.
    pub seconds: f64,
    /// The candidate.
    pub item: Item,
}

/// A declaration of the best of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The number of the trial in the run.
    pub number: u64,
    /// Its seconds in the finals.
    pub seconds: f64,
    /// Its competitors.
    pub against: serde_json::Value,
    /// The best that it replaces, which was measured with it.
    pub replaces: Option<TrialId>,
}

/// The result of a schedule in finals: its outcome, and the seconds of every round.
pub type Finalist = (Outcome, Vec<f64>);

/// Separates the schedules of finals; no schedule contains such a line.
const BETWEEN: &str = "%%\n";

/// Encodes finals: the milliseconds of timing, and the texts of the schedules.
#[must_use]
pub fn finals_text(time: Duration, schedules: &[String]) -> String {
    let lines = |text: &String| match text.is_empty() || text.ends_with('\n') {
        true => text.clone(),
        false => format!("{text}\n"),
    };
    let texts: Vec<String> = schedules.iter().map(lines).collect();
    format!("{}\n{BETWEEN}{}", time.as_millis(), texts.join(BETWEEN))
}

/// Decodes a [`finals_text`]; `None` if it is malformed.
#[must_use]
pub fn finals_of(text: &str) -> Option<(Duration, Vec<String>)> {
    let mut parts = text.split(BETWEEN);
    let time: u64 = parts.next()?.trim_end().parse().ok()?;
    // No item may keep a machine for longer.
    let time = Duration::from_millis(time).min(Duration::from_secs(60));
    let schedules: Vec<String> = parts.map(str::to_owned).collect();
    (1..=64).contains(&schedules.len()).then_some((time, schedules))
}

impl Fleet {
    /// Becomes the driver of a run: nobody else can add items any more. A process that seems alive
    /// keeps its run, unless the caller `insists`.
    ///
    /// # Errors
    /// If another process drives it, it is over, or it belongs to another user.
    pub fn drive(&mut self, run: &RunId, time: Duration, insists: bool) -> Result<Driver> {
        let sql = "SELECT drive($1, $2, $3)";
        let token = self.ask(sql, &[&run.as_str(), &time.as_secs_f64(), &insists])?;
        Ok(Driver { run: run.clone(), token })
    }

    /// Adds candidates to a run that this process drives; returns how many are new.
    ///
    /// # Errors
    /// If another process has taken the run over, and as [`Fleet::enqueue`].
    pub fn add(&mut self, driver: &Driver, items: &[Item]) -> Result<u64> {
        self.put(&driver.run, items, Some(&driver.token), false)
    }

    /// Adds finals: an item whose schedule is a [`finals_text`].
    ///
    /// # Errors
    /// As [`Fleet::add`].
    pub fn add_finals(&mut self, driver: &Driver, item: &Item) -> Result<u64> {
        self.put(&driver.run, std::slice::from_ref(item), Some(&driver.token), true)
    }

    /// Sends a heartbeat with the best known time; returns the status of the run.
    ///
    /// # Errors
    /// If another process has taken the run over.
    pub fn hold(
        &mut self,
        driver: &Driver,
        time: Duration,
        best: Option<f64>,
    ) -> Result<DriverStatus> {
        let values: &[&(dyn ToSql + Sync)] =
            &[&driver.run.as_str(), &driver.token, &time.as_secs_f64(), &best];
        let rows = self.query("SELECT * FROM hold($1, $2, $3, $4)", values)?;
        let Some(row) = rows.first() else { return Ok(DriverStatus::default()) };
        let peak = |at: usize| row.get::<Option<f64>>(at).map(Option::unwrap_or_default);
        Ok(DriverStatus {
            workers: row.get::<i32>(0)?.unsigned_abs(),
            roof: row.get(1)?,
            peaks: (peak(2)?, peak(3)?),
            is_over: row.get(4)?,
        })
    }

    /// All items of this user's run, with their outcomes.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn history(&mut self, run: &RunId) -> Result<Vec<PastItem>> {
        let mut all = Vec::new();
        let mut after = -1_i64;
        loop {
            let sql = "SELECT * FROM history($1, $2, 1000)";
            let rows = self.query(sql, &[&run.as_str(), &after])?;
            let Some(last) = rows.last() else { return Ok(all) };
            after = last.get(0)?;
            for row in &rows {
                let kind: Option<i32> = row.get(1)?;
                let outcome = kind.map(|_| crate::fleet::known(row)).transpose()?;
                all.push(PastItem { item: item(row, 0, 12)?, outcome, is_finals: row.get(16)? });
            }
        }
    }

    /// This user's run of the same command that has not ended and has no live driver.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn unfinished(&mut self, key: &Key, info: &RunInfo) -> Result<Option<RunId>> {
        let sql = "SELECT * FROM unfinished($1, $2, $3, $4, $5, $6, $7, $8)";
        let values: &[&(dyn ToSql + Sync)] = &[
            &key.program,
            &key.target,
            &i64::from(key.threads),
            &key.compiler,
            &key.precision.name(),
            &info.strategy,
            &info.seed.cast_signed(),
            &info.space,
        ];
        let rows = self.query(sql, values)?;
        let name = rows.first().map(|row| row.get::<String>(0)).transpose()?;
        Ok(name.map(|name| RunId::named(&name)))
    }

    /// The result of finals, when known; `Some(None)` if they were given up.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn final_result(
        &mut self,
        run: &RunId,
        number: u64,
    ) -> Result<Option<Option<Vec<Finalist>>>> {
        let sql = "SELECT * FROM final_result($1, $2)";
        let rows = self.query(sql, &[&run.as_str(), &number.cast_signed()])?;
        let Some(row) = rows.first() else { return Ok(Some(None)) };
        if !row.get::<bool>(0)? {
            return Ok(None);
        }
        let text = row.get::<Option<String>>(1)?;
        Ok(Some(text.and_then(|text| serde_json::from_str(&text).ok())))
    }

    /// Completes finals that this worker has leased.
    ///
    /// # Errors
    /// If there is no such worker of this user.
    pub fn complete_finals(
        &mut self,
        worker: WorkerId,
        lease: &Lease,
        finalists: &[Finalist],
    ) -> Result<CompletionStatus> {
        let text = serde_json::to_string(finalists).unwrap_or_default();
        let sql = "SELECT complete_finals($1, $2, $3, $4, $5)";
        let values: &[&(dyn ToSql + Sync)] =
            &[&worker.0, &lease.run, &lease.number.cast_signed(), &lease.token, &text];
        self.ask::<String>(sql, values).map(|answer| CompletionStatus::of(&answer))
    }

    /// The declared best of the key of this user's run.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn declared(&mut self, run: &RunId) -> Result<Option<DeclaredBest>> {
        let rows = self.query("SELECT * FROM declared($1)", &[&run.as_str()])?;
        let read = |row: &Row| {
            let item = item(row, 1, 4)?;
            let run = RunId::named(&row.get::<String>(0)?);
            let trial = TrialId { run, number: item.number };
            Ok(DeclaredBest { trial, seconds: row.get(2)?, item })
        };
        rows.first().map(read).transpose()
    }

    /// Declares the best of a key. It replaces only the best that it names.
    ///
    /// # Errors
    /// [`Error::Outrun`] if there is another best by now; if it was not measured, or another
    /// process has taken the run over.
    pub fn declare(&mut self, driver: &Driver, best: &Declaration) -> Result<()> {
        let replaces = best.replaces.as_ref().map(|id| format!("{}/{}", id.run, id.number));
        let sql = "SELECT declare_best($1, $2, $3, $4, $5, $6)";
        let values: &[&(dyn ToSql + Sync)] = &[
            &driver.run.as_str(),
            &driver.token,
            &best.number.cast_signed(),
            &best.seconds,
            &best.against.to_string(),
            &replaces,
        ];
        let Some(current) = self.ask::<Option<String>>(sql, values)? else { return Ok(()) };
        let (run, number) = current.rsplit_once('/').unwrap_or((&current, ""));
        let run = RunId::named(run);
        Err(Error::Outrun(TrialId { run, number: number.parse().unwrap_or_default() }))
    }

    /// Ends a run with a status: waiting items are dropped, unless it was only interrupted.
    ///
    /// # Errors
    /// If another process has taken the run over.
    pub fn finish(&mut self, driver: &Driver, status: &str) -> Result<()> {
        let sql = "SELECT finish($1, $2, $3)";
        self.query(sql, &[&driver.run.as_str(), &driver.token, &status]).map(|_| ())
    }
}

/// Reads an item: its number from one column, the rest from another column on.
fn item(row: &Row, number: usize, rest: usize) -> Result<Item> {
    Ok(Item {
        number: row.get::<i64>(number)?.cast_unsigned(),
        origin: Origin::from(row.get::<String>(rest)?.as_str()),
        algorithm: row.get::<Option<String>>(rest + 1)?.unwrap_or_default(),
        point: tensorwright_records::decode_point(&row.get::<Vec<u8>>(rest + 2)?)
            .unwrap_or_default(),
        schedule: row.get(rest + 3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finals_are_read_as_they_were_written() {
        let schedules = ["".to_owned(), "B: split i 8\n".to_owned(), "B: unroll i".to_owned()];
        let text = finals_text(Duration::from_secs(3), &schedules);
        let (time, read) = finals_of(&text).unwrap();
        assert_eq!(time, Duration::from_secs(3));
        assert_eq!(read, ["", "B: split i 8\n", "B: unroll i\n"]);
        for wrong in ["", "3000\n", "x\n%%\n", "-1\n%%\n", &format!("1\n{}", "%%\n".repeat(65))] {
            assert_eq!(finals_of(wrong), None, "{wrong}");
        }
        let long = finals_of("9999999999\n%%\n").unwrap();
        assert_eq!(long.0, Duration::from_secs(60));
    }
}
