//! The start of a run: history, child processes and first candidates.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tensorwright::runtime::Machine;
use tensorwright::{Goal, Schedule};
use tensorwright_outcome::Outcome;
use tensorwright_policy::{ScheduleSpace, default_schedule};
use tensorwright_records::{Journal, Origin, RunId, RunInfo, Trial, TrialId};
use tensorwright_search::{SearchStrategy, StrategySettings};
use tensorwright_space::Point;

use super::{FINALISTS, Session};
use crate::bandit::SourceBandit;
use crate::candidates::{Admission, Candidate, Candidates};
use crate::defects::Defects;
use crate::error::TuneError;
use crate::event::{Event, Phases, Progress};
use crate::executor::{Executor, OpenRun};
use crate::identity::{key_of, program_info, space_hash};
use crate::mode::Mode;
use crate::names::RecordNames;
use crate::pipelines::PipelineSource;
use crate::source::{RankedStrategy, Source, SpaceSource};
use crate::tuner::Tuner;
use crate::warm_start::RunHistory;

/// Top-ranked points of the cost model that every search starts from.
const RANKED: usize = 12;

impl<'a> Session<'a> {
    /// Prepares everything up to the first proposal of the search.
    pub(super) fn start(
        tuner: &'a Tuner,
        journal: &'a mut Journal,
        watch: &'a mut dyn FnMut(&Event<'_>),
        begun: Instant,
    ) -> Result<Self, TuneError> {
        let name = tuner.strategy_name();
        let strategy = tensorwright_search::find(name)
            .ok_or_else(|| TuneError::UnknownStrategy(name.to_owned()))?;
        if tuner.mode != Mode::Autotune && tuner.strategy.is_some() {
            return Err(TuneError::NoSearch(tuner.mode));
        }
        let goal = tuner.goal_here();
        let options = tuner.options_of(&tuner.program)?;
        let spaces = ScheduleSpace::alternatives(tuner.program.ir(), &goal, &options)?;
        let key = key_of(&tuner.program, &tuner.goal);
        let hash = space_hash(spaces.iter());
        let claims = journal.claims();
        let (past, about) = match journal.store() {
            Ok(store) => {
                let about = store.program(&key.program).ok().flatten();
                let names = RecordNames::new(&tuner.program, || about.clone());
                let past =
                    RunHistory::read(tuner, (store, &claims), (&key, &names), &spaces, &hash);
                drop(names);
                (past, about)
            }
            Err(_) => (RunHistory::default(), None),
        };
        let names = RecordNames::new(&tuner.program, move || about.clone());
        let mut info = RunInfo::new(tuner.chooser(), tuner.seed);
        hash.clone_into(&mut info.space);
        let OpenRun { executor, run, past, resumed } =
            Executor::open(tuner, journal, &key, &info, past)?;
        let clock = Instant::now();
        // The start points by origin, the most promising first.
        let seeds = |arm: usize, space: &ScheduleSpace| {
            let known = past.points.iter().filter(|place| place.arm == arm);
            let near = known.map(|place| (place.point.clone(), Origin::Near));
            near.chain(ranked(space)).chain([(space.start(), Origin::Start)]).collect()
        };
        let start = |space: &ScheduleSpace, seeds: &[(Point, Origin)]| {
            let start = seeds.iter().map(|(point, _)| point.clone()).collect();
            // A resumed run needs another seed: the same one would propose known points again.
            let seed = tuner.seed.wrapping_add(resumed.map_or(0, |(next, _)| next));
            let settings = StrategySettings { seed, start };
            strategy.start(Arc::clone(space.search_space()), &settings)
        };
        let mut bandit = SourceBandit::new(sources(tuner, &goal, spaces, seeds, start));
        bandit.observe(past.observations(&bandit));
        let strategy_time = clock.elapsed();
        let (next_trial, built) = resumed.unwrap_or_default();
        let mut session = Session {
            tuner,
            journal,
            watch,
            begun,
            bandit,
            strategy_time,
            spent: [Duration::ZERO; 3],
            tried: 0,
            phases: Phases::default(),
            executor,
            key,
            names,
            run,
            candidates: Candidates::default(),
            spans: HashMap::new(),
            measured: Vec::new(),
            default: (default_schedule(tuner.program.ir(), &goal)?, None),
            chosen: 0,
            next_trial,
            refused: 0,
            progress: Progress::default(),
            complained: false,
            defects: Defects::default(),
        };
        session.progress.trials = built;
        session.progress.budget = tuner.mode.most_trials(tuner.budget.trials);
        session.progress.time = tuner.budget.time;
        session.progress.flops = tuner.program.analysis().flops as f64;
        session.progress.roof_seconds = session.executor.roofline().seconds;
        session.recall(&past);
        if resumed.is_none() {
            session.begin(info);
        } else if session.executor.keeps_trials() {
            session.restore(&past, next_trial);
        }
        if let Some(reason) = session.executor.failure() {
            return Err(TuneError::Lost { run: session.run.to_string(), reason });
        }
        session.phases.start = begun.elapsed();
        session.announce(built, past.schedules.len());
        session.first_candidates(past.schedules);
        Ok(session)
    }

    /// Counts trials of earlier runs as measured, but measures the best of them again: conditions
    /// may have changed.
    fn recall(&mut self, past: &RunHistory) {
        for (_, trial) in &past.trials {
            // A trial that was cut short was slow compared with the best at that time: it may be
            // measured again.
            let is_cut = trial.outcome.timing().is_some_and(|timing| timing.cut);
            let is_known = !matches!(trial.outcome, Outcome::DeviceLost | Outcome::TimedOut { .. });
            // Every measured trial of this run counts.
            let is_own = self.executor.keeps_trials() && trial.outcome != Outcome::DeviceLost;
            if is_known && !is_cut || is_own {
                self.candidates.recall(trial.schedule.clone(), trial.outcome.clone());
            }
        }
        let is_timed = |trial: &Trial| trial.outcome.timing().is_some_and(|timing| !timing.cut);
        let mut best: Vec<&(RunId, Trial)> =
            past.trials.iter().filter(|(_, trial)| is_timed(trial)).collect();
        best.sort_by(|(_, a), (_, b)| {
            let cost = |t: &Trial| t.outcome.cost().unwrap_or(f64::INFINITY);
            cost(a).total_cmp(&cost(b))
        });
        for (run, trial) in best.into_iter().take(FINALISTS) {
            let Ok(schedule) = Schedule::parse(&trial.schedule) else { continue };
            if !self.tuner.goal.precision.allows(schedule.precision()) {
                continue;
            }
            let seconds = trial.outcome.cost().unwrap_or(f64::INFINITY);
            let is_own = self.executor.keeps_trials();
            let candidate = Candidate {
                schedule,
                text: trial.schedule.clone(),
                points: self.bandit.place(trial).into_iter().collect(),
                origin: if is_own { trial.origin.clone() } else { Origin::Record },
            };
            // If it wins, it is declared under its own number: one candidate is one trial.
            let id = TrialId { run: run.clone(), number: trial.number };
            self.measured.push((seconds, candidate, Some(id)));
            self.lower_best(seconds);
        }
    }

    /// Resumes a run of another process: candidates in flight keep their numbers, and nothing is
    /// tried twice.
    fn restore(&mut self, past: &RunHistory, next: u64) {
        let default = self.default.0.to_string();
        self.candidates.begin_at(next);
        for trial in &past.out {
            let Ok(schedule) = Schedule::parse(&trial.schedule) else { continue };
            let candidate = Candidate {
                schedule,
                text: trial.schedule.clone(),
                points: self.bandit.place(trial).into_iter().collect(),
                origin: trial.origin.clone(),
            };
            self.candidates.restore(trial.number, candidate);
        }
        for (_, trial) in &past.trials {
            self.progress.tally.add(&trial.outcome);
        }
        let known = past.trials.iter().find(|(_, trial)| trial.schedule == default);
        self.progress.default_seconds = known.and_then(|(_, trial)| trial.outcome.cost());
        self.default.1 =
            known.map(|(_, trial)| trial.number).or_else(|| self.candidates.is_out(&default));
    }

    /// Records the start of the run.
    fn begin(&mut self, mut info: RunInfo) {
        let roof = self.executor.roofline();
        let meta = json!({
            "command": self.tuner.command,
            "mode": self.tuner.mode.name(),
            "threads": self.tuner.goal.threads(),
            "machine": Machine::detect().model,
            "roofline": { "peak_gflops": roof.peak_gflops, "peak_gbps": roof.peak_gbps,
                          "flops": roof.flops, "bytes": roof.bytes, "seconds": roof.seconds },
            "algorithms": algorithms(&self.bandit),
            "budget": { "trials": self.tuner.budget.trials,
                        "seconds": self.tuner.budget.time.map(|time| time.as_secs_f64()) },
        });
        info.meta = meta;
        let program = program_info(&self.tuner.shown, self.tuner.sizes.clone());
        let kept = self.executor.begin(self.journal, &self.key, &program, &info);
        self.note(kept);
    }

    fn announce(&mut self, resumed: u64, warm: usize) {
        self.progress.elapsed = self.begun.elapsed();
        let sizes = self.bandit.spaces().map(|space| space.search_space().size());
        let space = sizes.sum::<num_bigint::BigUint>().to_string();
        let (progress, mode) = (&self.progress, self.tuner.mode);
        let fleet = self.executor.keeps_trials().then(|| self.run.to_string());
        (self.watch)(&Event::Started { progress, mode, space, resumed, warm, fleet });
    }

    /// Submits the first candidates: the default schedule as candidate zero, so that there is
    /// always a valid answer, then schedules from the records. In one-shot mode, the default
    /// schedule is measured only if nothing else can be used.
    fn first_candidates(&mut self, schedules: Vec<(Schedule, Origin)>) {
        // It is measured in every run, even if the records have it.
        let default = self.default.0.to_string();
        if self.default.1.is_none() {
            self.candidates = std::mem::take(&mut self.candidates).without(&default);
            if self.tuner.mode != Mode::OneShot {
                self.submit_default();
            }
        }
        // Fleets take no machine code.
        let planted =
            if self.executor.keeps_trials() { Vec::new() } else { self.tuner.planted.clone() };
        for (schedule, object) in planted {
            if let Admission::New(number) =
                self.candidates.admit(schedule.clone(), None, Origin::Planted)
            {
                self.executor.submit_object(number, &schedule, object);
            }
        }
        for (schedule, origin) in schedules {
            if let Admission::New(number) = self.candidates.admit(schedule, None, origin) {
                self.submit(number);
            }
        }
    }

    /// Measures the default schedule.
    pub(super) fn submit_default(&mut self) {
        let default = self.default.0.clone();
        if let Admission::New(number) = self.candidates.admit(default, None, Origin::Default) {
            self.submit(number);
            self.default.1 = Some(number);
        }
    }
}

/// The points that the cost model ranks first.
fn ranked(space: &ScheduleSpace) -> impl Iterator<Item = (Point, Origin)> {
    space.ranked(RANKED).into_iter().map(|point| (point, Origin::Ranked))
}

/// The sources of a run. Searches identify the spaces by their index among the sources.
fn sources(
    tuner: &Tuner,
    goal: &Goal,
    spaces: Vec<ScheduleSpace>,
    seeds: impl Fn(usize, &ScheduleSpace) -> Vec<(Point, Origin)>,
    start: impl Fn(&ScheduleSpace, &[(Point, Origin)]) -> Box<dyn SearchStrategy>,
) -> Vec<Box<dyn Source>> {
    let pipelines =
        PipelineSource::of(tuner, goal).map(|source| Box::new(source) as Box<dyn Source>);
    match tuner.mode {
        Mode::Autotune => {
            let searched = |(arm, space): (usize, ScheduleSpace)| {
                let seeds = seeds(arm, &space);
                let strategy = start(&space, &seeds);
                Box::new(SpaceSource { space, strategy, seeds }) as Box<dyn Source>
            };
            spaces.into_iter().enumerate().map(searched).chain(pipelines).collect()
        }
        Mode::Top5 if pipelines.is_none() => {
            // The space that contains the default schedule.
            let best = |space: ScheduleSpace| {
                let seeds: Vec<(Point, Origin)> = ranked(&space).collect();
                let points = seeds.iter().map(|(point, _)| point.clone()).collect();
                let strategy = Box::new(RankedStrategy(points));
                Box::new(SpaceSource { space, strategy, seeds }) as Box<dyn Source>
            };
            spaces.into_iter().take(1).map(best).collect()
        }
        Mode::OneShot | Mode::Top5 => pipelines.into_iter().collect(),
    }
}

/// The algorithms and their parameters, for readers of the records.
fn algorithms(bandit: &SourceBandit) -> Vec<serde_json::Value> {
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
    bandit.spaces().map(algorithm).collect()
}
