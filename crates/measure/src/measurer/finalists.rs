//! Finals: rebuilds finalists and times them in turns in one process.

use std::time::{Duration, Instant};

use tensorwright::Schedule;
use tensorwright_device::DeviceProgram;
use tensorwright_outcome::{Outcome, Phase};

use super::Measurer;
use super::child_slot::{Built, Job, Purpose, Run, Task};
use crate::protocol::RunnerRequest;

/// The deadline of callers without one.
const AGES: Duration = Duration::from_secs(24 * 3600);

/// How long after the deadline the runner may take to answer: it checks all results again.
const GRACE: Duration = Duration::from_secs(2);

/// A participant of a comparison.
enum Entrant<'a> {
    /// A schedule, and machine code to use instead of compiling it.
    Schedule(&'a Schedule, Option<&'a Vec<u8>>),
    /// A program for a device, with its error growth.
    Program(&'a DeviceProgram, f64),
}

/// The result of a candidate in a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Finalist {
    /// Its outcome.
    pub outcome: Outcome,
    /// The seconds of a call in every round, in the same order for all: the input of a [paired
    /// test](tensorwright_runtime::timing::paired). Empty if it was not timed in turns.
    pub rounds: Vec<f64>,
}

impl From<Outcome> for Finalist {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, rounds: Vec::new() }
    }
}

impl Measurer {
    /// Measures candidates again, in turns, so that a slow moment of the machine affects all of
    /// them, and checks their results before and after timing. Their times are more comparable than
    /// earlier ones; the ratios within a round decide. Takes about `budget`, and longer if they
    /// have to be built or a call takes long.
    ///
    /// Submitted candidates that have not been returned yet keep their places.
    pub fn finalists(&mut self, schedules: &[Schedule], budget: Duration) -> Vec<Finalist> {
        self.finalists_by(schedules, budget, Instant::now() + AGES)
    }

    /// The same, but ends at `until`. Finalists that were not timed by then come back as
    /// [`Outcome::TimedOut`], without rounds.
    pub fn finalists_by(
        &mut self,
        schedules: &[Schedule],
        budget: Duration,
        until: Instant,
    ) -> Vec<Finalist> {
        let entrant = |schedule| Entrant::Schedule(schedule, None);
        self.contest(schedules.iter().map(entrant).collect(), budget, until)
    }

    /// The same for programs of the target device, each with its error growth
    /// ([`Measurer::submit_program`]).
    pub fn finalist_programs(
        &mut self,
        programs: &[(DeviceProgram, f64)],
        budget: Duration,
    ) -> Vec<Finalist> {
        let programs = programs.iter().map(|(program, growth)| Entrant::Program(program, *growth));
        self.contest(programs.collect(), budget, Instant::now() + AGES)
    }

    /// The same with machine code in place of compiled schedules: for tests.
    #[doc(hidden)]
    pub fn finalist_objects(
        &mut self,
        candidates: &[(Schedule, Vec<u8>)],
        budget: Duration,
    ) -> Vec<Finalist> {
        let objects = candidates.iter();
        let objects = objects.map(|(schedule, object)| Entrant::Schedule(schedule, Some(object)));
        self.contest(objects.collect(), budget, Instant::now() + AGES)
    }

    fn contest(
        &mut self,
        entrants: Vec<Entrant<'_>>,
        budget: Duration,
        until: Instant,
    ) -> Vec<Finalist> {
        self.is_comparing = true;
        self.finalists = entrants.iter().map(|_| None).collect();
        let mut outcomes: Vec<Finalist> = vec![Outcome::DeviceLost.into(); entrants.len()];
        for (place, entrant) in entrants.into_iter().enumerate() {
            let purpose = Purpose::Finalist(place);
            match entrant {
                Entrant::Schedule(schedule, object) => {
                    self.enqueue(purpose, schedule, object.cloned());
                }
                Entrant::Program(program, error_growth) => {
                    let built = Built::of_program(purpose, program, error_growth);
                    let built = built.map(|built| *built).map_err(|(_, outcome)| outcome);
                    self.finalists[place] = Some(built);
                }
            }
        }
        self.await_all(until);
        let late = || Outcome::TimedOut { phase: Phase::Time, limit: budget.as_secs_f64() };
        let mut candidates = Vec::new();
        for (place, finalist) in std::mem::take(&mut self.finalists).into_iter().enumerate() {
            match finalist {
                Some(Ok(built)) => candidates.push((place, built)),
                Some(Err(outcome)) => outcomes[place] = outcome.into(),
                None if Instant::now() >= until => outcomes[place] = late().into(),
                None => {}
            }
        }
        let compared = self.compare(&candidates, budget, until);
        self.is_comparing = false;
        match compared.filter(|compared| compared.len() == candidates.len()) {
            Some(compared) => {
                let places = candidates.iter().map(|(place, _)| *place);
                places.zip(compared).for_each(|(place, outcome)| outcomes[place] = outcome);
            }
            None if Instant::now() >= until => {
                candidates.iter().for_each(|(place, _)| outcomes[*place] = late().into());
            }
            // One of them ended the process: run each alone to find out which.
            None => self.one_by_one(candidates, &mut outcomes, until),
        }
        self.dispatch();
        let heard = |one: Finalist| Finalist { outcome: self.names.heard(one.outcome), ..one };
        outcomes.into_iter().map(heard).collect()
    }

    /// Waits until all finalists are built or refused and nothing else runs.
    fn await_all(&mut self, until: Instant) {
        self.pump(until, |measurer| {
            let is_quiet = measurer.runner.is_idle() || measurer.runner.is_given_up();
            measurer.finalists.iter().all(Option::is_some) && is_quiet && !measurer.is_building()
        });
        self.queue.retain(|job| !is_finalist(job));
        for builder in &mut self.builders {
            if builder.task.as_ref().is_some_and(|task| is_finalist(&task.what)) {
                builder.expel();
            }
        }
    }

    fn compare(
        &mut self,
        candidates: &[(usize, Built)],
        budget: Duration,
        until: Instant,
    ) -> Option<Vec<Finalist>> {
        if candidates.is_empty() {
            return Some(Vec::new());
        }
        let left = until.saturating_duration_since(Instant::now());
        // When time has run out, the runner may still be busy with a trial.
        if left.is_zero() || self.runner.task.is_some() {
            return None;
        }
        let request = self.next_request();
        let described = candidates.iter().map(|(_, b)| (b.description.clone(), b.object.len()));
        let message = RunnerRequest::Compare {
            candidates: described.collect(),
            budget: budget.min(left),
            limit: left,
            plan: self.config.timing,
        };
        let objects: Vec<u8> =
            candidates.iter().flat_map(|(_, built)| built.object.iter().copied()).collect();
        let sent = self.runner.child.as_mut().map(|child| child.send(request, &message, &objects));
        if !matches!(sent, Some(Ok(()))) {
            return None;
        }
        // Each is called a few times, whatever the budget is.
        let calls = u32::try_from(candidates.len()).unwrap_or(u32::MAX).saturating_add(1);
        let mut each = self.config.run_deadline;
        if self.setup.device.is_some() {
            each = each.saturating_add(self.config.build_deadline);
        }
        let limit = budget.saturating_add(each.saturating_mul(calls));
        let limit = limit.min(left.saturating_add(GRACE));
        self.compared = None;
        self.runner.assign(Task::new(request, Run::Comparison), Phase::Time, limit);
        self.pump(Instant::now() + 2 * AGES, |measurer| measurer.compared.is_some());
        self.compared.take()
    }

    fn one_by_one(
        &mut self,
        candidates: Vec<(usize, Built)>,
        outcomes: &mut [Finalist],
        until: Instant,
    ) {
        self.finalists = outcomes.iter().map(|_| None).collect();
        let places: Vec<usize> = candidates.iter().map(|(place, _)| *place).collect();
        for (_, built) in candidates.into_iter().rev() {
            self.built.push_front(built);
        }
        self.pump(until, |measurer| {
            places.iter().all(|place| measurer.finalists.get(*place).is_some_and(Option::is_some))
        });
        self.built.retain(|built| !is_finalist(&built.job));
        let finalists = std::mem::take(&mut self.finalists);
        for (outcome, finalist) in outcomes.iter_mut().zip(finalists) {
            if let Some(Err(alone)) = finalist {
                *outcome = alone.into();
            }
        }
    }
}

fn is_finalist(job: &Job) -> bool {
    matches!(job.purpose, Purpose::Finalist(_))
}
