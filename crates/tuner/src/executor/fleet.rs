//! [`FleetExecutor`]: tries candidates through the queue of a fleet.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tensorwright::Schedule;
use tensorwright_fleet::{
    Declaration, Driver, DriverStatus, Fleet, Item, PastItem, Run, finals_text, passes,
};
use tensorwright_measure::{Finalist, Roofline, StepTimes, TrialResult};
use tensorwright_outcome::Outcome;
use tensorwright_records::{
    Best, Declared, Error, Journal, Key, Location, Origin, ProgramInfo, Result, RunEnd, RunId,
    RunInfo, Trial,
};

use super::{DEPTH, Executor, OpenRun, Submission};
use crate::candidates::Candidate;
use crate::error::TuneError;
use crate::identity::class_of;
use crate::remote_workers::RemoteWorkers;
use crate::tuner::Tuner;
use crate::warm_start::RunHistory;

/// How long a driver counts as alive after a heartbeat.
const HOLD: Duration = Duration::from_secs(20);

/// The interval between heartbeats.
const BEAT: Duration = Duration::from_secs(2);

/// How long to wait for the server at the start and the end of a run.
const PATIENCE: Duration = Duration::from_secs(600);

/// The longest life of a run; afterwards the server drops its waiting items, even if no process
/// resumes it.
const LIFE: Duration = Duration::from_secs(7 * 86_400);

/// The shortest and the longest pause between polls without news.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// How long workers may take beyond the time of the finals: one has to become free and to build.
const FINALS_PATIENCE: Duration = Duration::from_secs(600);

/// The same after the user has stopped the run.
const FINALS_HASTE: Duration = Duration::from_secs(60);

/// The most candidates in flight, however many workers there are.
const MOST_OUT: usize = 4096;

/// Remote workers that lease candidates from the server.
pub(crate) struct FleetExecutor {
    fleet: Fleet,
    driver: Driver,
    class: String,
    remote: RemoteWorkers,
    stop: Arc<AtomicBool>,
    /// Items to send.
    unsent: Vec<Item>,
    /// Numbers in flight.
    out: HashSet<u64>,
    finished: VecDeque<TrialResult>,
    /// The answer to the last heartbeat, and its time.
    held: DriverStatus,
    beaten: Option<Instant>,
    best: Option<f64>,
    work: (f64, f64),
    asked: Instant,
    pause: Duration,
    failure: Option<Error>,
}

impl FleetExecutor {
    /// Finds a run to resume, or prepares a new one.
    pub(super) fn open(
        tuner: &Tuner,
        remote: &RemoteWorkers,
        journal: &mut Journal,
        key: &Key,
        info: &RunInfo,
        mut past: RunHistory,
    ) -> std::result::Result<OpenRun, TuneError> {
        let Location::Server(url) = journal.location() else { return Err(TuneError::NoServer) };
        let mut fleet = Fleet::later(url)?;
        let driver = match &remote.resume {
            Some(name) => {
                let run = RunId::named(name);
                let driver = fleet.insist(PATIENCE, |fleet| fleet.drive(&run, HOLD, true));
                let lost = |reason| TuneError::Lost { run: name.clone(), reason };
                Some(driver.map_err(lost)?)
            }
            None if tuner.fresh => None,
            None => {
                let found = fleet.insist(PATIENCE, |fleet| fleet.unfinished(key, info))?;
                let mut drive =
                    |run| fleet.insist(PATIENCE, |fleet| fleet.drive(&run, HOLD, false));
                // Another process may have taken it first.
                found.and_then(|run| drive(run).ok())
            }
        };
        let items = match &driver {
            Some(driver) => fleet.insist(PATIENCE, |fleet| fleet.history(&driver.run))?,
            None => Vec::new(),
        };
        let class = remote.class.clone();
        let class = class.unwrap_or_else(|| class_of(&tuner.goal.target, tuner.goal.threads()));
        let analysis = tuner.program.analysis();
        let is_resumed = driver.is_some();
        let driver = driver.unwrap_or_else(|| Driver::nobody(&info.id));
        let run = driver.run.clone();
        let mut executor = Self {
            fleet,
            driver,
            class,
            remote: remote.clone(),
            stop: Arc::clone(&tuner.stop),
            unsent: Vec::new(),
            out: HashSet::new(),
            finished: VecDeque::new(),
            held: DriverStatus::default(),
            beaten: None,
            best: None,
            work: (analysis.flops as f64, analysis.min_bytes as f64),
            asked: Instant::now(),
            pause: PAUSES.0,
            failure: None,
        };
        let resumed = is_resumed.then(|| executor.recall(items, &mut past));
        Ok(OpenRun { executor: Executor::Fleet(Box::new(executor)), run, past, resumed })
    }

    /// Replaces the history with that of a resumed run: its trials, and its candidates in flight.
    /// Returns the next number and how many candidates were built.
    fn recall(&mut self, items: Vec<PastItem>, past: &mut RunHistory) -> (u64, u64) {
        (past.trials, past.out) = (Vec::new(), Vec::new());
        let mut next = 0;
        for PastItem { item, outcome, is_finals } in items {
            next = next.max(item.number + 1);
            let Item { number, origin, algorithm, point, schedule } = item;
            match outcome {
                _ if is_finals => {}
                Some(known) => {
                    let (outcome, elapsed) = (known.outcome, known.elapsed);
                    let trial =
                        Trial { number, origin, algorithm, point, schedule, outcome, elapsed };
                    past.trials.push((self.driver.run.clone(), trial));
                }
                None => {
                    self.out.insert(number);
                    let mut trial = Trial::new(number, point, &schedule);
                    (trial.algorithm, trial.origin) = (algorithm, origin);
                    past.out.push(trial);
                }
            }
        }
        let built = past.trials.iter().filter(|(_, t)| t.outcome.is_trial()).count() as u64;
        (next, built)
    }

    pub(super) fn failure(&mut self) -> Option<Error> {
        self.failure.clone()
    }

    pub(super) fn begin(&mut self, key: &Key, program: &ProgramInfo, info: &RunInfo) -> Result<()> {
        let mut run = Run::new(key.clone(), program.clone(), info.clone(), &self.class);
        (run.priority, run.weight) = (self.remote.priority, self.remote.weight);
        run.time = LIFE;
        let begun = self.fleet.insist(PATIENCE, |fleet| {
            fleet.begin_run(&run)?;
            fleet.drive(&run.info.id, HOLD, true)
        });
        match begun {
            Ok(driver) => self.driver = driver,
            Err(error) => self.failure = Some(error),
        }
        Ok(())
    }

    pub(super) fn roofline(&self) -> Roofline {
        Roofline {
            peak_gflops: self.held.peaks.0,
            peak_gbps: self.held.peaks.1,
            flops: self.work.0,
            bytes: self.work.1,
            seconds: self.held.roof.unwrap_or_default(),
        }
    }

    /// As many as a local run has in flight, per worker, and some that wait.
    pub(super) fn room(&self) -> usize {
        let workers = self.held.workers as usize;
        let most = DEPTH.saturating_mul(workers.saturating_add(1)).clamp(2 * DEPTH, MOST_OUT);
        most.saturating_sub(self.out.len())
    }

    pub(super) fn submit(&mut self, number: u64, what: Submission<'_>) {
        let Candidate { text, origin, .. } = what.candidate;
        let (origin, schedule) = (origin.clone(), text.clone());
        let (algorithm, point) = (what.algorithm, what.point);
        self.unsent.push(Item { number, origin, algorithm, point, schedule });
        self.out.insert(number);
    }

    pub(super) fn set_best(&mut self, seconds: f64) {
        self.best = Some(seconds).filter(|seconds| (1e-10..1e7).contains(seconds));
        // Workers cut slow candidates short by the best time, so tell them soon.
        self.beaten = None;
    }

    /// The next candidate whose outcome is known.
    pub(super) fn next(&mut self, wait: Duration) -> Option<TrialResult> {
        let until = Instant::now() + wait;
        loop {
            if let Some(finished) = self.finished.pop_front() {
                return Some(finished);
            }
            let now = Instant::now();
            if now >= self.asked + self.pause {
                self.asked = now;
                let asked = self.exchange();
                self.settle(asked);
                continue;
            }
            if now >= until || self.failure.is_some() {
                return None;
            }
            std::thread::sleep((self.asked + self.pause).min(until).saturating_duration_since(now));
        }
    }

    /// Sends new items to the server and fetches new outcomes.
    fn exchange(&mut self) -> Result<usize> {
        if self.beaten.is_none_or(|beaten| beaten.elapsed() > BEAT) {
            self.held = self.fleet.hold(&self.driver, HOLD, self.best)?;
            self.beaten = Some(Instant::now());
            if self.held.is_over {
                let (what, reason) = (format!("run {}", self.driver.run), "is over".to_owned());
                return Err(Error::Invalid { what, reason });
            }
        }
        if !self.unsent.is_empty() {
            self.fleet.add(&self.driver, &self.unsent)?;
            self.unsent.clear();
            self.pause = PAUSES.0;
        }
        if self.out.is_empty() {
            return Ok(0);
        }
        let numbers: Vec<u64> = self.out.iter().copied().collect();
        let known = self.fleet.outcomes(&self.driver.run, &numbers)?;
        for one in &known {
            self.out.remove(&one.number);
            let (id, outcome, spent) = (one.number, one.outcome.clone(), StepTimes::default());
            self.finished.push_back(TrialResult { id, outcome, spent });
        }
        Ok(known.len())
    }

    /// Sets the pause: short after news, longer without. Transient errors are waited out; others
    /// end the run.
    fn settle(&mut self, asked: Result<usize>) {
        match asked {
            Ok(0) => self.pause = (self.pause * 2).min(PAUSES.1),
            Ok(_) => self.pause = PAUSES.0,
            Err(error) if passes(&error) => self.pause = BEAT,
            Err(error) => self.failure = Some(error),
        }
    }

    /// Has one worker time the finalists in turns.
    pub(super) fn finalists(
        &mut self,
        number: u64,
        schedules: &[Schedule],
        time: Duration,
    ) -> Vec<Finalist> {
        let texts: Vec<String> = schedules.iter().map(ToString::to_string).collect();
        let (algorithm, point, schedule) = (String::new(), Vec::new(), finals_text(time, &texts));
        let item = Item { number, origin: Origin::from("finals"), algorithm, point, schedule };
        let (begun, driver) = (Instant::now(), self.driver.clone());
        let mut is_added = false;
        let found = loop {
            let asked = self.fleet.hold(&driver, HOLD, self.best).and_then(|held| {
                // In a short run, no worker may have reported its roofline yet.
                self.held = held;
                if !is_added {
                    self.fleet.add_finals(&driver, &item)?;
                    is_added = true;
                }
                self.fleet.final_result(&driver.run, number)
            });
            match asked {
                Ok(Some(found)) => break found,
                Ok(None) => {}
                Err(error) if passes(&error) => {}
                Err(error) => {
                    self.failure = Some(error);
                    break None;
                }
            }
            let is_urgent = self.stop.load(Ordering::Relaxed);
            let patience = if is_urgent { FINALS_HASTE } else { FINALS_PATIENCE };
            if begun.elapsed() > time + patience {
                break None;
            }
            std::thread::sleep(PAUSES.1);
        };
        let lost = || vec![Finalist::from(Outcome::DeviceLost); schedules.len()];
        let found = found.filter(|found| found.len() == schedules.len());
        found.map_or_else(lost, |found| {
            let finalist = |(outcome, rounds)| Finalist { outcome, rounds };
            found.into_iter().map(finalist).collect()
        })
    }

    /// The declared best of the key.
    pub(super) fn best(&mut self) -> Option<Best> {
        let run = self.driver.run.clone();
        let best = self.fleet.insist(PATIENCE, |fleet| fleet.declared(&run)).ok()??;
        let Item { number, origin, algorithm, point, schedule } = best.item;
        let mut trial = Trial::new(number, point, &schedule);
        (trial.origin, trial.algorithm) = (origin, algorithm);
        let declared = Declared {
            trial: best.trial.clone(),
            seconds: best.seconds,
            against: serde_json::Value::Null,
            declared: 0,
            replaces: None,
        };
        Some(Best { id: best.trial, trial, seconds: best.seconds, declared: Some(declared) })
    }

    pub(super) fn declare(&mut self, best: &Declared) -> Result<()> {
        let declaration = Declaration {
            number: best.trial.number,
            seconds: best.seconds,
            against: best.against.clone(),
            replaces: best.replaces.clone(),
        };
        let driver = self.driver.clone();
        self.fleet.insist(PATIENCE, |fleet| fleet.declare(&driver, &declaration))
    }

    pub(super) fn end(&mut self, end: &RunEnd) -> Result<()> {
        let driver = self.driver.clone();
        self.fleet.insist(PATIENCE, |fleet| fleet.finish(&driver, &end.status))
    }
}
