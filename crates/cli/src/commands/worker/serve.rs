//! The loop of a worker: lease, try, complete.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tensorwright::Target;
use tensorwright_fleet::{Answer, Completion, Fleet, Lease, Leased, WorkerId};
use tensorwright_measure::WorkerCommand;
use tensorwright_outcome::{Outcome, printable};
use tensorwright_records::{Error, Url};
use tensorwright_tuner::COMPILER;

use super::WorkerArgs;
use super::heart::Heart;
use super::trying::{Bench, Hopeless, Trying};
use crate::commands::tune::stop_on_signals;

/// How long a server that is away is waited for.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How long a worker waits before it asks again whether there is work, at first and at most.
const IDLE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// How long the loop waits before it looks around.
const TICK: Duration = Duration::from_millis(100);

/// Why a worker cannot go on.
pub(super) struct Trouble {
    pub(super) message: String,
    pub(super) help: String,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self { message: error.to_string(), help: error.help() }
    }
}

/// What a worker did.
#[derive(Default)]
struct Tally {
    stored: u64,
    fenced: u64,
}

struct Worker<'a> {
    fleet: Fleet,
    id: WorkerId,
    heart: Heart,
    bench: Bench,
    args: &'a WorkerArgs,
    stop: &'a AtomicBool,
    /// The run that was tried last, which the next candidates are often of.
    trying: Option<(i64, Trying)>,
    tally: Tally,
}

/// Works until it is told to end, or nothing waits and that is enough.
pub(super) fn run(args: &WorkerArgs, url: &Url, worker: WorkerCommand) -> Result<(), Trouble> {
    let stop = stop_on_signals();
    let target = Target::native().map_err(|error| Trouble {
        message: error.to_string(),
        help: "workers are for machines that can be described".to_owned(),
    })?;
    let threads = usize::from(args.threads);
    let class = args.class.clone().unwrap_or_else(|| class_of(&target, threads));
    let name = args.name.clone().unwrap_or_else(default_name);
    let mut fleet = Fleet::connect(url)?;
    let id = fleet.join(&name, &class, &target.fingerprint()).map_err(|error| match error {
        Error::Denied { .. } => Trouble {
            message: format!("{error}: {class}"),
            help: "ask whoever runs the fleet for a permit for this class".to_owned(),
        },
        other => other.into(),
    })?;
    eprintln!("worker {name} of class {}", printable(&class));
    let heart = Heart::start(url, id, args.lease)?;
    let bench = Bench { worker, target, threads };
    let (trying, tally) = (None, Tally::default());
    let mut worker = Worker { fleet, id, heart, bench, args, stop: &stop, trying, tally };
    let result = worker.serve();
    let Tally { stored, fenced } = worker.tally;
    eprintln!("worker {name}: {stored} stored, {fenced} fenced");
    result
}

/// The class of this machine: what results depend on.
pub(super) fn class_of(target: &Target, threads: usize) -> String {
    format!("{} x{threads} {COMPILER}", target.fingerprint())
}

/// The name of the machine and the number of this process.
fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let host: String = host.trim().chars().filter(plain).take(40).collect();
    format!("{}:{}", if host.is_empty() { "worker" } else { &host }, std::process::id())
}

impl Worker<'_> {
    fn serve(&mut self) -> Result<(), Trouble> {
        let mut pause = IDLE.0;
        while !self.stop.load(Ordering::Relaxed) {
            let (id, most, time) = (self.id, self.args.batch, self.args.lease);
            let leased = self.fleet.insist(PATIENCE, |fleet| fleet.lease(id, most, time))?;
            if !leased.is_empty() {
                pause = IDLE.0;
                self.heart.hold(leased.iter().map(|leased| &leased.lease));
                self.try_all(leased)?;
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

    /// Tries candidates, run by run.
    fn try_all(&mut self, leased: Vec<Leased>) -> Result<(), Trouble> {
        let mut runs: BTreeMap<i64, Vec<Leased>> = BTreeMap::new();
        for one in leased {
            runs.entry(one.lease.run).or_default().push(one);
        }
        runs.into_iter().try_for_each(|(run, leased)| self.try_run(run, leased))
    }

    fn try_run(&mut self, run: i64, leased: Vec<Leased>) -> Result<(), Trouble> {
        if let Err(hopeless) = self.take_up(run)? {
            let all = leased.into_iter().map(|one| (one.lease, hopeless.clone()));
            return self.complete(all.collect());
        }
        let Some((_, trying)) = &mut self.trying else { return Ok(()) };
        let mut known = Vec::new();
        for (place, one) in (0..).zip(&leased) {
            if let Some(outcome) = trying.begin(place, one) {
                known.push((one.lease.clone(), outcome));
            }
        }
        self.complete(known)?;
        loop {
            let Some((_, trying)) = &mut self.trying else { return Ok(()) };
            let finished = trying.next(TICK);
            if let Some((place, outcome)) = finished
                && let Some(one) = usize::try_from(place).ok().and_then(|place| leased.get(place))
            {
                self.complete(vec![(one.lease.clone(), outcome)])?;
            } else if trying.in_flight() == 0 {
                return Ok(());
            }
        }
    }

    /// Gets ready for a run; the outcome of all its candidates if none can be tried.
    fn take_up(&mut self, run: i64) -> Result<Result<(), Outcome>, Trouble> {
        if self.trying.as_ref().is_some_and(|(current, _)| *current == run) {
            return Ok(Ok(()));
        }
        // Children of the run before end first: they would be in the way of measurements.
        self.trying = None;
        let assignment = self.fleet.insist(PATIENCE, |fleet| fleet.assignment(run))?;
        let Some(assignment) = assignment else {
            let reason = "the run is not for this worker".to_owned();
            return Ok(Err(Outcome::Illegal { rule: "class".to_owned(), reason }));
        };
        match Trying::start(&assignment, &self.bench) {
            Ok(trying) => {
                let (id, probe) = (self.id, trying.probe());
                self.trying = Some((run, trying));
                match self.fleet.insist(PATIENCE, |fleet| fleet.report_probe(id, probe))? {
                    None => Ok(Ok(())),
                    Some(reason) => Err(Trouble {
                        message: format!("this worker is quarantined: {reason}"),
                        help: "let the machine do nothing else, or ask whoever runs the fleet"
                            .to_owned(),
                    }),
                }
            }
            Err(Hopeless::Refused(outcome)) => Ok(Err(outcome)),
            Err(Hopeless::Machine(error)) => Err(Trouble {
                message: error.to_string(),
                help: "what this worker held is handed to others".to_owned(),
            }),
        }
    }

    /// Stores what became of candidates that this worker still holds.
    fn complete(&mut self, known: Vec<(Lease, Outcome)>) -> Result<(), Trouble> {
        let (lost, known): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|(lease, _)| self.heart.is_lost(lease));
        self.tally.fenced += lost.len() as u64;
        let completions: Vec<Completion> =
            known.into_iter().map(|(lease, outcome)| Completion { lease, outcome }).collect();
        let id = self.id;
        let answers = self.fleet.insist(PATIENCE, |fleet| fleet.complete(id, &completions))?;
        let fenced = answers.iter().filter(|answer| **answer == Answer::Fenced).count() as u64;
        self.tally.fenced += fenced;
        self.tally.stored += answers.len() as u64 - fenced;
        lost.iter().for_each(|(lease, _)| self.heart.release(lease));
        completions.iter().for_each(|completion| self.heart.release(&completion.lease));
        Ok(())
    }
}
