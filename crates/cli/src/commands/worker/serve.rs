//! The main loop of a worker: lease, try, complete.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tensorwright::Target;
use tensorwright::printable;
use tensorwright_fleet::{Completion, CompletionStatus, Fleet, Lease, LeasedItem, WorkerId};
use tensorwright_measure::{Roofline, WorkerCommand};
use tensorwright_outcome::Outcome;
use tensorwright_records::{Error, Url};
use tensorwright_tuner::class_of;

use super::WorkerArgs;
use super::candidate_runner::{Bench, CandidateRunner, SetupError};
use super::heartbeat::Heartbeat;
use crate::commands::tune::stop_on_signals;

/// How long to wait for an unreachable server.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The first and the longest pause between polls for work.
const IDLE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The pause between leases while candidates are in hand.
const AGAIN: Duration = Duration::from_millis(20);

/// Runs whose child processes are kept: starting a run takes longer than a candidate.
const KEPT: usize = 3;

/// Repeated probes, of which the best counts.
const PROBES: usize = 3;

/// How often the loop checks for events.
const TICK: Duration = Duration::from_millis(100);

/// Why a worker cannot continue.
pub(super) struct WorkerError {
    pub(super) message: String,
    pub(super) help: String,
}

impl From<Error> for WorkerError {
    fn from(error: Error) -> Self {
        Self { message: error.to_string(), help: error.help() }
    }
}

/// Counts of a worker's results.
#[derive(Default)]
struct Tally {
    stored: u64,
    fenced: u64,
}

impl Tally {
    fn note(&mut self, answers: &[CompletionStatus]) {
        let fenced =
            answers.iter().filter(|answer| **answer == CompletionStatus::Fenced).count() as u64;
        self.fenced += fenced;
        self.stored += answers.len() as u64 - fenced;
    }
}

struct Worker<'a> {
    fleet: Fleet,
    id: WorkerId,
    heart: Heartbeat,
    bench: Bench,
    args: &'a WorkerArgs,
    stop: &'a AtomicBool,
    /// Recently used runs, newest first: the next candidates often belong to one of them.
    trying: Vec<(i64, CandidateRunner)>,
    /// The number of the last started candidate.
    places: u64,
    /// The results of the last probes, in GFLOP/s.
    probes: VecDeque<f64>,
    tally: Tally,
}

/// Works until it is told to stop, or until no candidates wait and `--once` is set.
pub(super) fn run(args: &WorkerArgs, url: &Url, worker: WorkerCommand) -> Result<(), WorkerError> {
    let stop = stop_on_signals();
    let target = Target::native().map_err(|error| WorkerError {
        message: error.to_string(),
        help: "workers are for machines that can be described".to_owned(),
    })?;
    let threads = usize::from(args.threads);
    let class = args.class.clone().unwrap_or_else(|| class_of(&target, threads));
    let name = args.name.clone().unwrap_or_else(default_name);
    let mut fleet = Fleet::connect(url)?;
    let id = fleet.join(&name, &class, &target.fingerprint()).map_err(|error| match error {
        Error::Denied { .. } => WorkerError {
            message: format!("{error}: {class}"),
            help: "ask the fleet's administrator for a permit for this class".to_owned(),
        },
        other => other.into(),
    })?;
    eprintln!("worker {name} of class {}", printable(&class));
    let heart = Heartbeat::start(url, id, args.lease)?;
    let bench = Bench { worker, target, threads };
    let (trying, places, probes) = (Vec::new(), 0, VecDeque::new());
    let tally = Tally::default();
    let mut worker =
        Worker { fleet, id, heart, bench, args, stop: &stop, trying, places, probes, tally };
    let result = worker.serve();
    let Tally { stored, fenced } = worker.tally;
    eprintln!("worker {name}: {stored} stored, {fenced} fenced");
    result
}

/// The machine's name and this process's number.
fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let host: String = host.trim().chars().filter(plain).take(40).collect();
    format!("{}:{}", if host.is_empty() { "worker" } else { &host }, std::process::id())
}

impl Worker<'_> {
    fn serve(&mut self) -> Result<(), WorkerError> {
        let mut pause = IDLE.0;
        while !self.stop.load(Ordering::Relaxed) {
            let (id, current) = (self.id, self.trying.first().map(|(run, _)| *run));
            let mut leased = self.lease(self.args.batch, current)?;
            if !leased.is_empty() {
                pause = IDLE.0;
                while !leased.is_empty() {
                    leased = self.try_run(leased)?;
                }
                continue;
            }
            let swept = self.fleet.insist(PATIENCE, Fleet::sweep)?;
            if self.args.once && swept.returned == 0 {
                return Ok(());
            }
            if self.fleet.insist(PATIENCE, |fleet| fleet.is_drained(id))? {
                eprintln!("this worker is drained");
                return Ok(());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(IDLE.1);
        }
        Ok(())
    }

    /// Leases candidates, preferably of a run that is already set up.
    fn lease(&mut self, most: u32, run: Option<i64>) -> Result<Vec<LeasedItem>, WorkerError> {
        let (id, time) = (self.id, self.args.lease);
        let leased = self.fleet.insist(PATIENCE, |fleet| fleet.lease_of(id, most, time, run))?;
        self.heart.hold(leased.iter().map(|leased| &leased.lease));
        Ok(leased)
    }

    /// Tries candidates of one run and leases more as they become fewer; returns leases of other
    /// runs.
    fn try_run(&mut self, leased: Vec<LeasedItem>) -> Result<Vec<LeasedItem>, WorkerError> {
        let Some(run) = leased.first().map(|one| one.lease.run) else { return Ok(leased) };
        if let Err(hopeless) = self.take_up(run)? {
            self.refuse(leased, &hopeless)?;
            return Ok(Vec::new());
        }
        let (mut held, mut finals) = (HashMap::new(), Vec::new());
        self.begin(leased, &mut held, &mut finals)?;
        let mut others = Vec::new();
        let mut asked = Instant::now();
        loop {
            let Some((_, trying)) = self.trying.first_mut() else { return Ok(others) };
            if let Some((place, outcome)) = trying.next(TICK) {
                if let Some(lease) = held.remove(&place) {
                    self.complete(vec![(lease, outcome)])?;
                }
            } else if trying.in_flight() == 0 {
                break;
            }
            let few = held.len() <= self.args.batch as usize / 2 && finals.is_empty();
            let may = others.is_empty() && !self.stop.load(Ordering::Relaxed);
            if few && may && !held.is_empty() && asked.elapsed() >= AGAIN {
                asked = Instant::now();
                let most = self.args.batch.saturating_sub(held.len() as u32).max(1);
                let more = self.lease(most, Some(run))?;
                match more.first().map(|one| one.lease.run) {
                    Some(other) if other != run => others = more,
                    _ => self.begin(more, &mut held, &mut finals)?,
                }
            }
        }
        for one in finals {
            self.finals(&one)?;
        }
        Ok(others)
    }

    /// Starts candidates. Finals run alone, after everything else.
    fn begin(
        &mut self,
        leased: Vec<LeasedItem>,
        held: &mut HashMap<u64, Lease>,
        finals: &mut Vec<LeasedItem>,
    ) -> Result<(), WorkerError> {
        let Some((_, trying)) = self.trying.first_mut() else { return Ok(()) };
        let mut known = Vec::new();
        for one in leased {
            if one.is_finals {
                finals.push(one);
                continue;
            }
            self.places += 1;
            match trying.begin(self.places, &one) {
                Some(outcome) => known.push((one.lease, outcome)),
                None => drop(held.insert(self.places, one.lease)),
            }
        }
        self.complete(known)
    }

    fn finals(&mut self, one: &LeasedItem) -> Result<(), WorkerError> {
        let Some((_, trying)) = self.trying.first_mut() else { return Ok(()) };
        let finalists = trying.finals(&one.schedule);
        let (id, lease) = (self.id, &one.lease);
        let answer =
            self.fleet.insist(PATIENCE, |fleet| fleet.complete_finals(id, lease, &finalists))?;
        self.tally.note(&[answer]);
        self.heart.release(lease);
        Ok(())
    }

    /// Gives all candidates of a run the same outcome; its finals get none.
    fn refuse(&mut self, leased: Vec<LeasedItem>, outcome: &Outcome) -> Result<(), WorkerError> {
        let (finals, others): (Vec<_>, Vec<_>) = leased.into_iter().partition(|one| one.is_finals);
        for one in finals {
            let id = self.id;
            let answer =
                self.fleet.insist(PATIENCE, |fleet| fleet.complete_finals(id, &one.lease, &[]))?;
            self.tally.note(&[answer]);
            self.heart.release(&one.lease);
        }
        self.complete(others.into_iter().map(|one| (one.lease, outcome.clone())).collect())
    }

    /// Sets up a run, or returns the outcome for all its candidates. The children of a few other
    /// runs stay idle.
    fn take_up(&mut self, run: i64) -> Result<Result<(), Outcome>, WorkerError> {
        if let Some(at) = self.trying.iter().position(|(other, _)| *other == run) {
            let found = self.trying.remove(at);
            self.trying.insert(0, found);
            return Ok(Ok(()));
        }
        self.trying.truncate(KEPT - 1);
        let assignment = self.fleet.insist(PATIENCE, |fleet| fleet.assignment(run))?;
        let Some(assignment) = assignment else {
            let reason = "the run is not for this worker".to_owned();
            return Ok(Err(Outcome::Illegal { rule: "class".to_owned(), reason }));
        };
        match CandidateRunner::start(&assignment, &self.bench) {
            Ok(trying) => {
                let (id, roofline) = (self.id, trying.roofline());
                let Roofline { peak_gflops, peak_gbps, seconds, .. } = roofline;
                // The best of the last few: other processes may have interfered.
                self.probes.push_back(peak_gflops);
                if self.probes.len() > PROBES {
                    self.probes.pop_front();
                }
                let probe = self.probes.iter().copied().fold(0.0, f64::max);
                self.trying.insert(0, (run, trying));
                let reported = self.fleet.insist(PATIENCE, |fleet| {
                    let aside = fleet.report_probe(id, probe)?;
                    if aside.is_none() {
                        fleet.report_roof(id, run, seconds, (peak_gflops, peak_gbps))?;
                    }
                    Ok(aside)
                });
                match reported? {
                    None => Ok(Ok(())),
                    Some(reason) => Err(WorkerError {
                        message: format!("this worker is quarantined: {reason}"),
                        help: "stop other work on the machine, or ask the fleet's administrator"
                            .to_owned(),
                    }),
                }
            }
            Err(SetupError::Refused(outcome)) => Ok(Err(outcome)),
            Err(SetupError::Machine(error)) => Err(WorkerError {
                message: error.to_string(),
                help: "the leases of this worker are reassigned".to_owned(),
            }),
        }
    }

    /// Stores the outcomes of candidates whose leases are still held.
    fn complete(&mut self, known: Vec<(Lease, Outcome)>) -> Result<(), WorkerError> {
        let (lost, known): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|(lease, _)| self.heart.is_lost(lease));
        self.tally.fenced += lost.len() as u64;
        let completions: Vec<Completion> =
            known.into_iter().map(|(lease, outcome)| Completion { lease, outcome }).collect();
        let id = self.id;
        let answers = self.fleet.insist(PATIENCE, |fleet| fleet.complete(id, &completions))?;
        self.tally.note(&answers);
        lost.iter().for_each(|(lease, _)| self.heart.release(lease));
        completions.iter().for_each(|completion| self.heart.release(&completion.lease));
        Ok(())
    }
}
