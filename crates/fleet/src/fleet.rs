//! [`Fleet`]: a connection to the queue.

use std::collections::HashMap;
use std::time::Duration;

use tensorwright_outcome::{Outcome, Timing};
use tensorwright_records::postgres::{Client, Settings, ToSql};
use tensorwright_records::{Error, Result, RunId, Url};

use crate::item::{Item, Run};
use crate::lease::{Assignment, Columns, Completion, ItemOutcome, Lease, LeasedItem, WorkerId};
use crate::row::{FromRow, Row};

/// The time limit of a connection and of an answer.
const LIMIT: Duration = Duration::from_secs(15);

/// Items added per transaction.
const BATCH: usize = 200;

/// The first and the longest pause before reconnecting.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Whether an error is transient: the server cannot be reached, or there is a conflict.
#[must_use]
pub fn passes(error: &Error) -> bool {
    matches!(
        error,
        Error::Unreachable { .. }
            | Error::Conflict { .. }
            | Error::Busy { .. }
            | Error::Full { .. }
    )
}

/// The result of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionStatus {
    /// It is stored in the records.
    Stored,
    /// It was already stored by the same lease: an answer was lost.
    Again,
    /// The lease was revoked: another worker has the item.
    Fenced,
}

impl CompletionStatus {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "stored" => Self::Stored,
            "again" => Self::Again,
            _ => Self::Fenced,
        }
    }
}

/// The result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Items with expired leases that wait again.
    pub returned: u32,
    /// Items given up because they lost too many workers.
    pub given_up: u32,
    /// Items of runs that are over.
    pub dropped: u32,
}

/// A connection to the queue. All requests are idempotent, so the next request replaces a lost
/// connection; [`Fleet::insist`] retries until there is an answer.
pub struct Fleet {
    settings: Settings,
    client: Option<Client>,
    limit: Duration,
}

impl Fleet {
    /// Connects to a server.
    ///
    /// # Errors
    /// If the URL cannot be used or the server cannot be reached.
    pub fn connect(url: &Url) -> Result<Self> {
        let mut fleet = Self::later(url)?;
        fleet.client()?;
        Ok(fleet)
    }

    /// A connection that opens with the first request.
    ///
    /// # Errors
    /// If the URL cannot be used.
    pub fn later(url: &Url) -> Result<Self> {
        Ok(Self { settings: Settings::of(url)?, client: None, limit: LIMIT })
    }

    /// Sets the time limit of an answer.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn client(&mut self) -> Result<&Client> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = Some(Client::connect(&self.settings, self.limit)?);
        }
        self.client.as_ref().ok_or(Error::NoDataDirectory)
    }

    /// Drops a lost connection, whose state is unknown.
    fn noted<T>(&mut self, result: Result<T>) -> Result<T> {
        if matches!(result, Err(Error::Unreachable { .. })) {
            self.client = None;
        }
        result
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<()> {
        let limit = self.limit;
        let result = self.client().and_then(|client| client.batch(sql, limit));
        self.noted(result)
    }

    pub(crate) fn query(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let limit = self.limit;
        let result = self.client().and_then(|client| client.query(sql, values, limit));
        let at = self.settings.location().clone();
        let rows = self.noted(result)?;
        Ok(rows.into_iter().map(|row| Row::new(row, &at)).collect())
    }

    /// The single value of a function.
    pub(crate) fn ask<T: FromRow>(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<T> {
        let rows = self.query(sql, values)?;
        let nothing = || Error::Database {
            at: self.settings.location().clone(),
            detail: "a function has no answer".to_owned(),
        };
        rows.first().ok_or_else(nothing)?.get(0)
    }

    /// Retries transient errors, with growing pauses, for at most `patience`.
    ///
    /// # Errors
    /// The last transient error, and any other error.
    pub fn insist<T>(
        &mut self,
        time: Duration,
        mut ask: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let begun = std::time::Instant::now();
        let mut pause = PAUSES.0;
        loop {
            match ask(self) {
                Err(error) if passes(&error) && begun.elapsed() + pause < time => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES.1);
                }
                result => return result,
            }
        }
    }

    /// Begins a run. Idempotent.
    ///
    /// # Errors
    /// If there is no such class, the quota is used up, or a value is missing or impossible.
    pub fn begin_run(&mut self, run: &Run) -> Result<()> {
        let Run { key, program, info, .. } = run;
        let sizes = serde_json::json!(program.sizes).to_string();
        let sql = "SELECT begin_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";
        self.query(
            sql,
            &[
                &info.id.as_str(),
                &run.class,
                &i32::from(run.priority),
                &i32::from(run.weight),
                &run.time.as_secs_f64(),
                &run.input_seed.cast_signed(),
                &program.hash,
                &program.family,
                &program.def,
                &sizes,
                &program.text,
                &program.flops,
                &program.bytes,
                &key.target,
                &i64::from(key.threads),
                &key.compiler,
                &key.precision.name(),
                &info.strategy,
                &info.seed.cast_signed(),
                &info.space,
                &info.meta.to_string(),
            ],
        )?;
        Ok(())
    }

    /// Adds items to a run; returns how many are new. Existing items stay as they are.
    ///
    /// # Errors
    /// If the run belongs to another user or is over, the quota is used up, or an item is
    /// impossible.
    pub fn enqueue(&mut self, run: &RunId, items: &[Item]) -> Result<u64> {
        self.put(run, items, None, false)
    }

    pub(crate) fn put(
        &mut self,
        run: &RunId,
        items: &[Item],
        driver: Option<&str>,
        is_finals: bool,
    ) -> Result<u64> {
        let mut added = 0;
        for items in items.chunks(BATCH) {
            let numbers: Vec<i64> = items.iter().map(|item| item.number.cast_signed()).collect();
            let origins: Vec<&str> = items.iter().map(|item| item.origin.as_str()).collect();
            let algorithms: Vec<&str> = items.iter().map(|item| item.algorithm.as_str()).collect();
            let points: Vec<Vec<u8>> =
                items.iter().map(|item| tensorwright_records::encode_point(&item.point)).collect();
            let schedules: Vec<&str> = items.iter().map(|item| item.schedule.as_str()).collect();
            let sql = "SELECT enqueue($1, $2, $3, $4, $5, $6, $7, $8)";
            let values: &[&(dyn ToSql + Sync)] = &[
                &run.as_str(),
                &numbers,
                &origins,
                &algorithms,
                &points,
                &schedules,
                &driver,
                &is_finals,
            ];
            added += u64::from(self.ask::<i32>(sql, values)?.unsigned_abs());
        }
        Ok(added)
    }

    /// Cancels a run: waiting items are dropped, leased ones may still be completed.
    ///
    /// # Errors
    /// If it is not this user's run.
    pub fn cancel(&mut self, run: &RunId) -> Result<()> {
        self.query("SELECT cancel($1)", &[&run.as_str()]).map(|_| ())
    }

    /// The known outcomes among these items.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn outcomes(&mut self, run: &RunId, numbers: &[u64]) -> Result<Vec<ItemOutcome>> {
        let numbers: Vec<i64> = numbers.iter().map(|number| number.cast_signed()).collect();
        let rows = self.query("SELECT * FROM outcomes($1, $2)", &[&run.as_str(), &numbers])?;
        rows.iter().map(known).collect()
    }

    /// Joins a class as a worker.
    ///
    /// # Errors
    /// If this user may not work for the class.
    pub fn join(&mut self, name: &str, class: &str, description: &str) -> Result<WorkerId> {
        self.ask("SELECT join_class($1, $2, $3)", &[&name, &class, &description]).map(WorkerId)
    }

    /// Reports a probe of this machine; returns why the worker is quarantined, if it is.
    ///
    /// # Errors
    /// If there is no such worker of this user.
    pub fn report_probe(&mut self, worker: WorkerId, probe: f64) -> Result<Option<String>> {
        self.ask("SELECT report_probe($1, $2)", &[&worker.0, &probe])
    }

    /// Reports the roofline of a run on this machine: the lower bound in seconds, and the peaks in
    /// GFLOP/s and GB/s.
    ///
    /// # Errors
    /// If there is no such run for a worker of this user.
    pub fn report_roof(
        &mut self,
        worker: WorkerId,
        run: i64,
        roof: f64,
        (gflops, gbps): (f64, f64),
    ) -> Result<()> {
        let values: &[&(dyn ToSql + Sync)] = &[&worker.0, &run, &roof, &gflops, &gbps];
        self.query("SELECT report_roof($1, $2, $3, $4, $5)", values).map(|_| ())
    }

    /// Leases at most `most` items of one run for `time`.
    ///
    /// # Errors
    /// If the worker is quarantined or may no longer work for its class.
    pub fn lease(
        &mut self,
        worker: WorkerId,
        most: u32,
        time: Duration,
    ) -> Result<Vec<LeasedItem>> {
        self.lease_of(worker, most, time, None)
    }

    /// The same, preferring a run that the worker has already prepared.
    ///
    /// # Errors
    /// As [`Fleet::lease`].
    pub fn lease_of(
        &mut self,
        worker: WorkerId,
        most: u32,
        time: Duration,
        run: Option<i64>,
    ) -> Result<Vec<LeasedItem>> {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        let values: &[&(dyn ToSql + Sync)] = &[&worker.0, &most, &time.as_secs_f64(), &run];
        let rows = self.query("SELECT * FROM lease($1, $2, $3, $4)", values)?;
        let leased = rows.iter().map(|row| {
            let number = row.get::<i64>(1)?.cast_unsigned();
            Ok(LeasedItem {
                lease: Lease { run: row.get(0)?, number, token: row.get(2)? },
                attempts: row.get::<i32>(3)?.unsigned_abs(),
                schedule: row.get(4)?,
                is_finals: row.get(5)?,
                best: row.get(6)?,
            })
        });
        leased.collect()
    }

    /// Whether a worker is drained: it gets no more items and may end.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn is_drained(&mut self, worker: WorkerId) -> Result<bool> {
        self.ask("SELECT is_drained($1)", &[&worker.0])
    }

    /// The data of a lease's run; `None` if this user may not work for it.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn assignment(&mut self, run: i64) -> Result<Option<Assignment>> {
        let rows = self.query("SELECT * FROM assignment($1)", &[&run])?;
        let read = |row: &Row| {
            Ok(Assignment {
                run: row.get(0)?,
                class: row.get(1)?,
                input_seed: row.get::<i64>(2)?.cast_unsigned(),
                program: row.get(3)?,
                def: row.get(4)?,
                // Malformed sizes do not bind.
                sizes: serde_json::from_str(&row.get::<String>(5)?).unwrap_or_default(),
                text: row.get(6)?,
                target: row.get(7)?,
                threads: u32::try_from(row.get::<i64>(8)?).unwrap_or(0),
                compiler: row.get(9)?,
                precision: row.get(10)?,
            })
        };
        rows.first().map(read).transpose()
    }

    /// Renews leases; returns the tokens of those still held. Work for the others is wasted.
    ///
    /// # Errors
    /// If there is no such worker of this user.
    pub fn beat(
        &mut self,
        worker: WorkerId,
        leases: &[Lease],
        time: Duration,
    ) -> Result<Vec<String>> {
        let runs: Vec<i64> = leases.iter().map(|lease| lease.run).collect();
        let numbers: Vec<i64> = leases.iter().map(|lease| lease.number.cast_signed()).collect();
        let tokens: Vec<&str> = leases.iter().map(|lease| lease.token.as_str()).collect();
        let sql = "SELECT * FROM beat($1, $2, $3, $4, $5)";
        let seconds = time.as_secs_f64();
        let rows = self.query(sql, &[&worker.0, &runs, &numbers, &tokens, &seconds])?;
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Stores outcomes, each in one transaction with its trial; returns the status of each, in
    /// order.
    ///
    /// # Errors
    /// If one of them is impossible; then none is stored.
    pub fn complete(
        &mut self,
        worker: WorkerId,
        completions: &[Completion],
    ) -> Result<Vec<CompletionStatus>> {
        if completions.is_empty() {
            return Ok(Vec::new());
        }
        let c = Columns::new(completions);
        let sql = "SELECT * FROM complete($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let rows = self.query(
            sql,
            &[
                &worker.0,
                &c.runs,
                &c.numbers,
                &c.tokens,
                &c.kinds,
                &c.cuts,
                &c.seconds,
                &c.raw,
                &c.spreads,
                &c.counts,
                &c.rooflines,
                &c.details,
            ],
        )?;
        let read = |row: &Row| Ok((row.get(0)?, CompletionStatus::of(&row.get::<String>(1)?)));
        let answered: HashMap<String, CompletionStatus> =
            rows.iter().map(read).collect::<Result<_>>()?;
        let answer =
            |token: &String| answered.get(token).copied().unwrap_or(CompletionStatus::Fenced);
        Ok(c.tokens.iter().map(answer).collect())
    }

    /// Revokes expired leases. All workers call this now and then.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn sweep(&mut self) -> Result<SweepReport> {
        let rows = self.query("SELECT * FROM sweep()", &[])?;
        let Some(row) = rows.first() else { return Ok(SweepReport::default()) };
        let count = |at: usize| row.get::<i32>(at).map(i32::unsigned_abs);
        Ok(SweepReport { returned: count(0)?, given_up: count(1)?, dropped: count(2)? })
    }
}

/// Reads an outcome. An unknown one counts as a lost device: nothing is known of the item.
pub(crate) fn known(row: &Row) -> Result<ItemOutcome> {
    let outcome = match row.get::<i32>(1)? {
        0 => Some(Outcome::Measured(Timing {
            seconds: row.get(3)?,
            raw_seconds: row.get(4)?,
            spread: row.get(5)?,
            runs: u32::try_from(row.get::<i64>(6)?).unwrap_or(u32::MAX),
            roofline: row.get(7)?,
            cut: row.get(2)?,
        })),
        _ => row.get::<Option<String>>(8)?.and_then(|text| serde_json::from_str(&text).ok()),
    };
    Ok(ItemOutcome {
        number: row.get::<i64>(0)?.cast_unsigned(),
        outcome: outcome.unwrap_or(Outcome::DeviceLost),
        elapsed: row.get(9)?,
        worker: row.get(10)?,
        attempts: row.get::<i32>(11)?.unsigned_abs(),
    })
}
