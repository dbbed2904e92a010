//! The loop of a run.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use tensorwright_kernel::runtime::Machine;
use tensorwright_kernel::{Cpu, Goal, Schedule};
use tensorwright_measure::{Config, Finished, Measurer, Roofline};
use tensorwright_outcome::Outcome;
use tensorwright_policy::{ScheduleSpace, untuned_schedule};
use tensorwright_records::{
    Claim, Journal, Kept, Key, Origin, RunEnd, RunId, RunInfo, Store, Trial, TrialId,
};
use tensorwright_search::{Proposal, Settings};

use crate::arms::{ArmPoint, Arms};
use crate::candidates::{Admission, Candidate, Candidates};
use crate::finals::FINALISTS;
use crate::identity::{key_of, program_info, space_hash};
use crate::trust::verification;
use crate::warm::{Past, Unfinished, is_built};
use crate::{Defects, Event, Progress, Status, TuneError, Tuned, Tuner};

/// Points that the cost model puts first, which every search starts from.
const RANKED: usize = 12;

/// Points that a search may propose per trial although rules or primitives refuse them.
const MOST_REFUSED: u64 = 200;

/// Candidates that are out at a time: one is timed, one waits for it, others are built. More would be
/// proposed with less known.
pub(crate) const DEPTH: usize = 4;

/// How long the loop waits before it looks at the clock and the stop flag.
const TICK: Duration = Duration::from_millis(100);

/// A run.
pub(crate) struct Session<'a> {
    pub(crate) tuner: &'a Tuner,
    pub(crate) journal: &'a mut Journal,
    pub(crate) watch: &'a mut dyn FnMut(&Event<'_>),
    begun: Instant,
    goal: Goal<Cpu>,
    arms: Arms,
    strategy_time: Duration,
    spent: [Duration; 3],
    pub(crate) measurer: Measurer,
    roofline: Roofline,
    pub(crate) key: Key,
    pub(crate) run: RunId,
    /// Keeps others from going on with the run while this process lives.
    claim: Option<Claim>,
    candidates: Candidates,
    /// Measured schedules, for the finals.
    pub(crate) measured: Vec<(f64, Candidate, Option<TrialId>)>,
    pub(crate) default: Option<(Schedule, u64)>,
    next_trial: u64,
    refused: u64,
    pub(crate) progress: Progress,
    complained: bool,
    defects: Defects,
}

impl<'a> Session<'a> {
    pub(crate) fn start(
        tuner: &'a Tuner,
        journal: &'a mut Journal,
        watch: &'a mut dyn FnMut(&Event<'_>),
    ) -> Result<Self, TuneError> {
        let begun = Instant::now();
        let strategy = tensorwright_search::find(&tuner.strategy)
            .ok_or_else(|| TuneError::UnknownStrategy(tuner.strategy.clone()))?;
        let goal = tuner.cpu_goal()?;
        let spaces = ScheduleSpace::alternatives(tuner.program.ir(), &goal, &tuner.options);
        let key = key_of(&tuner.program, &tuner.goal);
        let hash = space_hash(spaces.iter());
        let claims = journal.claims();
        let mut past = match journal.store() {
            Ok(store) => Past::read(tuner, (store, &claims), &key, &spaces, &hash),
            Err(_) => Past::default(),
        };
        let mut config = Config::new(tuner.worker.clone(), tuner.goal.target.clone());
        config.threads = tuner.goal.threads();
        config.seed = tuner.seed;
        let measurer = Measurer::start(&tuner.program, config)?;
        let roofline = measurer.roofline();
        let settings = |arm: usize, space: &ScheduleSpace| {
            let known = past.points.iter().filter(|place| place.arm == arm);
            let start = known.map(|place| place.point.clone());
            let start = start.chain(space.ranked(RANKED)).chain([space.start()]);
            let start = start.collect();
            Settings { seed: tuner.seed, start }
        };
        let clock = Instant::now();
        let mut arms =
            Arms::new(spaces, |space, settings| strategy.start(space, settings), settings);
        arms.observe(past.observations(&arms));
        let strategy_time = clock.elapsed();
        let resumed = past.unfinished.is_some();
        let (run, next_trial, built, claim) = match past.unfinished.take() {
            Some(Unfinished { run, last, built, claim }) => (run, last + 1, built, Some(claim)),
            None => {
                let run = RunId::fresh();
                let claim = claims.begin(&run);
                (run, 0, 0, claim)
            }
        };
        let mut session = Session {
            tuner,
            journal,
            watch,
            begun,
            goal,
            arms,
            strategy_time,
            spent: [Duration::ZERO; 3],
            measurer,
            roofline,
            key,
            run,
            claim,
            candidates: Candidates::default(),
            measured: Vec::new(),
            default: None,
            next_trial,
            refused: 0,
            progress: Progress::default(),
            complained: false,
            defects: Defects::default(),
        };
        session.progress.trials = built;
        session.progress.budget = tuner.budget.trials;
        session.progress.time = tuner.budget.time;
        session.progress.flops = tuner.program.analysis().flops as f64;
        session.progress.roof_seconds = session.roofline.seconds;
        session.recall(&past);
        if !resumed {
            session.begin(&hash);
        }
        session.announce(built, past.schedules.len());
        session.first_candidates(past.schedules);
        Ok(session)
    }

    /// Trials of earlier runs count as measured, but their times are of another hour: the best of them
    /// are measured again.
    fn recall(&mut self, past: &Past) {
        for trial in &past.trials {
            // What was cut short then was slow beside the best of then: it may be measured again.
            let is_cut = trial.outcome.timing().is_some_and(|timing| timing.cut);
            let is_known = !matches!(trial.outcome, Outcome::DeviceLost | Outcome::TimedOut { .. });
            if is_known && !is_cut {
                self.candidates.recall(trial.schedule.clone(), trial.outcome.clone());
            }
        }
        let mut best: Vec<&Trial> =
            past.trials.iter().filter(|t| t.outcome.timing().is_some_and(|t| !t.cut)).collect();
        best.sort_by(|a, b| {
            let cost = |t: &Trial| t.outcome.cost().unwrap_or(f64::INFINITY);
            cost(a).total_cmp(&cost(b))
        });
        for trial in best.into_iter().take(FINALISTS) {
            let Ok(schedule) = Schedule::parse(&trial.schedule) else { continue };
            if !self.tuner.goal.precision.allows(schedule.precision()) {
                continue;
            }
            let seconds = trial.outcome.cost().unwrap_or(f64::INFINITY);
            let candidate = Candidate {
                schedule,
                text: trial.schedule.clone(),
                points: self.arms.place(trial).into_iter().collect(),
                origin: Origin::Record,
            };
            // Under a number of its own in this run, if it wins.
            self.measured.push((seconds, candidate, None));
            self.lower_best(seconds);
        }
    }

    /// Notes in the records that a run begins.
    fn begin(&mut self, hash: &str) {
        let roof = &self.roofline;
        let meta = json!({
            "command": self.tuner.command,
            "threads": self.tuner.goal.threads(),
            "machine": Machine::detect().model,
            "roofline": { "peak_gflops": roof.peak_gflops, "peak_gbps": roof.peak_gbps,
                          "flops": roof.flops, "bytes": roof.bytes, "seconds": roof.seconds },
            "algorithms": algorithms(&self.arms),
            "budget": { "trials": self.tuner.budget.trials,
                        "seconds": self.tuner.budget.time.map(|time| time.as_secs_f64()) },
        });
        let mut info = RunInfo::new(&self.tuner.strategy, self.tuner.seed);
        info.id = self.run.clone();
        hash.clone_into(&mut info.space);
        info.meta = meta;
        let program = program_info(&self.tuner.program, self.tuner.sizes.clone());
        let kept = self.journal.begin_run(&self.key, &program, &info);
        self.note(kept);
    }

    fn announce(&mut self, resumed: u64, warm: usize) {
        self.progress.elapsed = self.begun.elapsed();
        let sizes = self.arms.iter().map(|arm| arm.space.search_space().size());
        let space = sizes.sum::<num_bigint::BigUint>().to_string();
        (self.watch)(&Event::Started { progress: &self.progress, space, resumed, warm });
    }

    /// The default schedule is candidate zero: there is always a valid answer. Then what records know.
    fn first_candidates(&mut self, schedules: Vec<Schedule>) {
        let default = untuned_schedule(self.tuner.program.ir(), &self.goal);
        // It is measured in every run, also if a record knows it.
        self.candidates = std::mem::take(&mut self.candidates).without(&default.to_string());
        if let Admission::New(number) =
            self.candidates.admit(default.clone(), None, Origin::Default)
        {
            self.measurer.submit(number, &default);
            self.default = Some((default, number));
        }
        for (schedule, object) in self.tuner.planted.clone() {
            if let Admission::New(number) =
                self.candidates.admit(schedule.clone(), None, Origin::Planted)
            {
                self.measurer.submit_object(number, &schedule, object);
            }
        }
        for schedule in schedules {
            if let Admission::New(number) =
                self.candidates.admit(schedule.clone(), None, Origin::Record)
            {
                self.measurer.submit(number, &schedule);
            }
        }
    }

    /// Says once that records wait, and always that one is refused.
    pub(crate) fn note(&mut self, kept: tensorwright_records::Result<Kept>) {
        match kept {
            Ok(Kept::Database) => self.complained = false,
            Ok(Kept::Waiting) if self.complained => {}
            Ok(Kept::Waiting) => {
                self.complained = true;
                let trouble = self.journal.trouble().map(ToString::to_string);
                (self.watch)(&Event::RecordsWait(trouble.unwrap_or_default()));
            }
            Err(error) => (self.watch)(&Event::RecordRefused(error.to_string())),
        }
    }

    pub(crate) fn run(mut self) -> Result<Tuned, TuneError> {
        let status = self.search();
        self.measurer.cancel();
        let winner = self.finals();
        let ended = tensorwright_records::now();
        let end = RunEnd { ended, status: status.word().to_owned() };
        let kept = self.journal.end_run(&self.run, &end);
        self.note(kept);
        // What waits gets another chance; it is in the file beside the database anyway.
        let _ = self.journal.flush();
        if let Some(claim) = self.claim.take().filter(|_| status != Status::Interrupted) {
            claim.finish();
        }
        self.progress.elapsed = self.begun.elapsed();
        let waiting = self.journal.waiting();
        let why = self.journal.trouble().map(ToString::to_string).unwrap_or_default();
        Ok(Tuned {
            winner,
            status,
            progress: self.progress,
            key: self.key,
            run: self.run.to_string(),
            strategy_time: self.strategy_time,
            spent: self.spent,
            peaks: (self.roofline.peak_gflops, self.roofline.peak_gbps),
            waiting: (waiting > 0).then_some((waiting, why)),
            rejected: self.journal.rejected(),
            defects: self.defects,
        })
    }

    /// Proposes and measures until the budget is used.
    fn search(&mut self) -> Status {
        let mut exhausted = false;
        loop {
            if self.tuner.stop.load(Ordering::Relaxed) {
                return Status::Interrupted;
            }
            if self.time_left().is_some_and(|left| left.is_zero()) {
                return Status::Finished;
            }
            let left = self.tuner.budget.trials.map(|all| all.saturating_sub(self.progress.trials));
            if left == Some(0) {
                return Status::Finished;
            }
            let left = left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
            let room = DEPTH.saturating_sub(self.measurer.in_flight());
            let room = room.min(left.saturating_sub(self.candidates.out()));
            if room > 0 && !exhausted {
                exhausted = !self.propose(room);
            }
            if exhausted && self.candidates.out() == 0 {
                return Status::Exhausted;
            }
            match self.measurer.next(self.tick()) {
                Some(finished) => self.finished(finished),
                None => {
                    self.progress.elapsed = self.begun.elapsed();
                    (self.watch)(&Event::Waiting(&self.progress));
                }
            }
        }
    }

    /// How much time the search has left.
    fn time_left(&self) -> Option<Duration> {
        let budget = self.tuner.budget;
        let time = budget.time?.saturating_sub(budget.for_finalists());
        Some(time.saturating_sub(self.begun.elapsed()))
    }

    fn tick(&self) -> Duration {
        self.time_left().map_or(TICK, |left| left.min(TICK))
    }

    /// Asks the strategy; says whether there is more to come.
    fn propose(&mut self, room: usize) -> bool {
        let clock = Instant::now();
        let proposal = self.arms.propose(room);
        self.strategy_time += clock.elapsed();
        let places = match proposal {
            Ok(places) => places,
            Err(Proposal::Wait) if self.candidates.out() > 0 => return true,
            // It waits for what will not come.
            Err(_) => return false,
        };
        for place in places {
            let decoded = self.arms.space(place.arm).map(|space| space.decode(&place.point));
            match decoded {
                Some(Ok(schedule)) => self.admit(schedule, place),
                Some(Err(refused)) => {
                    let rule = refused.rule.to_owned();
                    let outcome = Outcome::Illegal { rule, reason: refused.reason };
                    self.refuse(place, outcome);
                }
                None => {}
            }
        }
        self.refused < MOST_REFUSED * (self.progress.trials + 10)
    }

    fn admit(&mut self, schedule: Schedule, place: ArmPoint) {
        let origin = self.proposer(&place);
        match self.candidates.admit(schedule.clone(), Some(place.clone()), origin) {
            Admission::New(number) => self.measurer.submit(number, &schedule),
            Admission::Waits => {}
            Admission::Known(outcome) => self.tell(vec![(place, outcome)]),
        }
    }

    /// The strategy that proposed a point.
    fn proposer(&self, place: &ArmPoint) -> Origin {
        let inner = self.arms.proposer(place);
        Origin::Search(inner.map_or_else(|| self.tuner.strategy.clone(), str::to_owned))
    }

    /// A point that no schedule stands for.
    fn refuse(&mut self, place: ArmPoint, outcome: Outcome) {
        self.refused += 1;
        self.progress.tally.add(&outcome);
        let candidate = Candidate {
            schedule: Schedule::default(),
            text: String::new(),
            points: vec![place.clone()],
            origin: self.proposer(&place),
        };
        self.record(&candidate, &outcome);
        self.tell(vec![(place, outcome)]);
    }

    fn tell(&mut self, observations: Vec<(ArmPoint, Outcome)>) {
        let clock = Instant::now();
        self.arms.observe(observations);
        self.strategy_time += clock.elapsed();
    }

    /// Commits an outcome, and returns its number in the run.
    pub(crate) fn record(&mut self, candidate: &Candidate, outcome: &Outcome) -> u64 {
        let number = self.next_trial;
        self.next_trial += 1;
        let place = candidate.points.first();
        let point = place.map(|place| place.point.ranks().to_vec());
        let mut trial = Trial::new(number, point.unwrap_or_default(), &candidate.text);
        trial.algorithm = place.and_then(|place| self.arms.algorithm(place)).unwrap_or_default();
        trial.origin.clone_from(&candidate.origin);
        trial.outcome = outcome.clone();
        trial.elapsed = self.begun.elapsed().as_secs_f64();
        let kept = self.journal.insert(&self.run, &trial);
        self.note(kept);
        number
    }

    fn finished(&mut self, finished: Finished) {
        let Finished { id, outcome, spent, .. } = finished;
        for (sum, part) in self.spent.iter_mut().zip([spent.build, spent.check, spent.time]) {
            *sum += part;
        }
        let Some(candidate) = self.candidates.back(id, &outcome) else { return };
        let number = self.record(&candidate, &outcome);
        self.defects.note(self.tuner, self.journal, &candidate.text, &outcome);
        self.progress.trials += u64::from(is_built(&outcome));
        self.progress.tally.add(&outcome);
        let is_default = self.default.as_ref().is_some_and(|(_, default)| *default == id);
        let mut is_best = false;
        if let Some(timing) = outcome.timing() {
            if is_default {
                self.progress.default_seconds = Some(timing.seconds);
            }
            if !timing.cut {
                is_best = self.lower_best(timing.seconds);
                if is_best {
                    self.vouch(&candidate.text);
                }
                let trial = TrialId { run: self.run.clone(), number };
                self.measured.push((timing.seconds, candidate.clone(), Some(trial)));
            }
        }
        self.progress.curve.extend(self.progress.best_seconds);
        self.progress.elapsed = self.begun.elapsed();
        let progress = &self.progress;
        (self.watch)(&Event::Trial { number, outcome: &outcome, is_best, progress });
        let observe = |place| (place, outcome.clone());
        let observations: Vec<_> = candidate.points.into_iter().map(observe).collect();
        if !observations.is_empty() {
            self.tell(observations);
        }
    }

    /// Notes that a schedule was compared with the reference here, so that its first use need not do it
    /// again. Should that fail, the first use does.
    pub(crate) fn vouch(&mut self, text: &str) {
        let what = verification(&self.key, text);
        if let Ok(store) = self.journal.store() {
            let _ = store.note_verified(&what, true);
        }
    }

    /// Notes a time; says whether it is the best.
    fn lower_best(&mut self, seconds: f64) -> bool {
        let is_best = self.progress.best_seconds.is_none_or(|best| seconds < best);
        if is_best {
            self.progress.best_seconds = Some(seconds);
            self.measurer.set_best(seconds);
        }
        is_best
    }
}

/// The algorithms and the parameters of their spaces, for people who look at records.
fn algorithms(arms: &Arms) -> Vec<serde_json::Value> {
    let parameter = |parameter: &tensorwright_space::Parameter| {
        let count = parameter.count();
        let texts = |count| (0..count).map(|rank| parameter.text(rank)).collect::<Vec<_>>();
        let values = (count <= 512).then(|| texts(count));
        json!({ "name": parameter.name(), "kind": parameter.kind(), "count": count,
                "values": values })
    };
    let algorithm = |space: &ScheduleSpace| {
        let parameters = space.search_space().parameters().iter();
        let parameters: Vec<_> = parameters.map(parameter).collect();
        json!({ "name": space.algorithm(), "parameters": parameters })
    };
    arms.iter().map(|arm| algorithm(&arm.space)).collect()
}
