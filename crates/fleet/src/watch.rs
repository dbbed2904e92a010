//! The status of classes, workers and runs.

use std::collections::BTreeMap;

use tensorwright_records::Result;

use crate::fleet::Fleet;
use crate::row::Row;

/// Outcomes by kind, in the order of [`tensorwright_outcome::Outcome::kind_index`].
pub type Kinds = [u64; 7];

/// The status of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The name of the class.
    pub class: String,
    /// Items that wait.
    pub ready: u64,
    /// Leased items.
    pub leased: u64,
    /// Items whose outcome is known.
    pub done: u64,
    /// Workers seen in the last two minutes.
    pub workers: u64,
    /// Quarantined workers.
    pub quarantined: u64,
    /// Runs that are not over.
    pub runs: u64,
    /// Completed items by kind of outcome.
    pub kinds: Kinds,
}

/// A worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// `busy`, `idle`, `draining`, `gone` or `set aside`.
    pub state: String,
    /// Why it is quarantined.
    pub reason: Option<String>,
    /// The seconds since its last heartbeat.
    pub seen: f64,
    /// Its last probe.
    pub probe: Option<f64>,
    /// Items that it holds.
    pub held: u64,
    /// Its completed items by kind of outcome.
    pub kinds: Kinds,
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStatus {
    /// Its name.
    pub run: String,
    /// The class that tries its candidates.
    pub class: String,
    /// The name of the definition.
    pub def: String,
    /// Its sizes, by name.
    pub sizes: BTreeMap<String, i64>,
    /// The strategy.
    pub strategy: String,
    /// Its owner.
    pub owner: String,
    /// Items in all.
    pub items: u64,
    /// Items that wait.
    pub waiting: u64,
    /// Leased items.
    pub held: u64,
    /// Items dropped because the run ended first.
    pub dropped: u64,
    /// The best seconds so far.
    pub best: Option<f64>,
    /// The seconds since it began.
    pub age: f64,
    /// `running`, `left` (its process is gone), or how it ended.
    pub status: String,
}

impl RunStatus {
    /// Items whose outcome is known.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.items.saturating_sub(self.waiting + self.held + self.dropped)
    }
}

/// The activity of a class at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The class.
    pub class: String,
    /// Its age in seconds.
    pub age: f64,
    /// Items with known outcomes.
    pub done: u64,
    /// Items that waited.
    pub ready: u64,
    /// Leased items.
    pub leased: u64,
    /// Active workers.
    pub workers: u64,
}

impl Fleet {
    /// The status of each class.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn status(&mut self) -> Result<Vec<Status>> {
        let rows = self.query("SELECT * FROM status()", &[])?;
        let read = |row: &Row| {
            Ok(Status {
                class: row.get(0)?,
                ready: count(row, 1)?,
                leased: count(row, 2)?,
                done: count(row, 3)?,
                workers: count(row, 4)?,
                quarantined: count(row, 5)?,
                runs: count(row, 6)?,
                kinds: kinds(row, 7)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Workers seen in the last hour, and quarantined ones.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn workers(&mut self) -> Result<Vec<WorkerStatus>> {
        let rows = self.query("SELECT * FROM workers_now()", &[])?;
        let read = |row: &Row| {
            Ok(WorkerStatus {
                name: row.get(0)?,
                class: row.get(1)?,
                state: row.get(2)?,
                reason: row.get(3)?,
                seen: row.get(4)?,
                probe: row.get(5)?,
                held: count(row, 6)?,
                kinds: kinds(row, 7)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// At most `limit` runs: those that are not over, then the latest.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn runs(&mut self, limit: u32) -> Result<Vec<RunStatus>> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let rows = self.query("SELECT * FROM runs_now($1)", &[&limit])?;
        let read = |row: &Row| {
            Ok(RunStatus {
                run: row.get(0)?,
                class: row.get(1)?,
                def: row.get(2)?,
                sizes: serde_json::from_str(&row.get::<String>(3)?).unwrap_or_default(),
                strategy: row.get(4)?,
                owner: row.get(5)?,
                items: count(row, 6)?,
                waiting: count(row, 7)?,
                held: count(row, 8)?,
                dropped: count(row, 9)?,
                best: row.get(10)?,
                age: row.get(11)?,
                status: row.get(12)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// A run's best-so-far curve: seconds since it began, and seconds of a call.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn curve(&mut self, run: &str) -> Result<Vec<(f64, f64)>> {
        let rows = self.query("SELECT * FROM curve($1)", &[&run])?;
        rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
    }

    /// The activity of each class in the last `seconds` seconds, the oldest first.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn samples(&mut self, seconds: f64) -> Result<Vec<Sample>> {
        let rows = self.query("SELECT * FROM samples_since($1)", &[&seconds])?;
        let read = |row: &Row| {
            Ok(Sample {
                class: row.get(0)?,
                age: row.get(1)?,
                done: count(row, 2)?,
                ready: count(row, 3)?,
                leased: count(row, 4)?,
                workers: count(row, 5)?,
            })
        };
        rows.iter().map(read).collect()
    }
}

fn count(row: &Row, at: usize) -> Result<u64> {
    row.get::<i64>(at).map(|count| u64::try_from(count).unwrap_or(0))
}

fn kinds(row: &Row, at: usize) -> Result<Kinds> {
    let counts: Vec<i64> = row.get(at)?;
    let mut kinds = Kinds::default();
    for (kind, count) in kinds.iter_mut().zip(counts) {
        *kind = u64::try_from(count).unwrap_or(0);
    }
    Ok(kinds)
}
