//! The search loop: propose, measure, record and learn.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tensorwright::Schedule;
use tensorwright_measure::TrialResult;
use tensorwright_outcome::Outcome;
use tensorwright_records::{Origin, TrialId};
use tensorwright_search::Proposal;

use super::Session;
use crate::bandit::ArmPoint;
use crate::candidates::{Admission, Candidate};
use crate::event::{Event, Status};
use crate::mode::Mode;

/// Illegal points that a search may propose per trial.
const MOST_REFUSED: u64 = 200;

/// How long the loop waits before it checks the clock and the stop flag.
const TICK: Duration = Duration::from_millis(100);

impl Session<'_> {
    /// Proposes and measures until the budget is used up.
    pub(super) fn search(&mut self) -> Status {
        let mut exhausted = false;
        loop {
            if self.tuner.stop.load(Ordering::Relaxed) || self.executor.failure().is_some() {
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
            let room = self.executor.room();
            let room = room.min(left.saturating_sub(self.candidates.out())).min(self.wanted());
            if room > 0 && !exhausted {
                exhausted = !self.propose(room);
            }
            if (exhausted || self.has_chosen()) && self.candidates.out() == 0 {
                // The model's choice may have failed; a valid answer is still needed.
                if self.default.1.is_none() && !self.has_chosen() {
                    self.submit_default();
                    continue;
                }
                return Status::Exhausted;
            }
            match self.executor.next(self.tick()) {
                Some(finished) => self.finished(finished),
                None => {
                    self.progress.roof_seconds = self.executor.roofline().seconds;
                    self.progress.elapsed = self.begun.elapsed();
                    (self.watch)(&Event::Waiting(&self.progress));
                }
            }
        }
    }

    /// How many schedules the sources may propose now in this mode.
    fn wanted(&self) -> usize {
        match self.tuner.mode {
            // The model's next choice, if the one before cannot be used.
            Mode::OneShot => usize::from(!self.has_chosen() && self.candidates.out() == 0),
            mode => mode.most_chosen().map_or(usize::MAX, |most| most.saturating_sub(self.chosen)),
        }
    }

    /// Whether the sources have proposed all that the mode measures.
    fn has_chosen(&self) -> bool {
        match self.tuner.mode {
            Mode::OneShot => !self.measured.is_empty(),
            mode => mode.most_chosen().is_some_and(|most| self.chosen >= most),
        }
    }

    /// The search's remaining time.
    fn time_left(&self) -> Option<Duration> {
        let time = self.tuner.budget.time?.saturating_sub(self.reserve());
        Some(time.saturating_sub(self.begun.elapsed()))
    }

    fn tick(&self) -> Duration {
        self.time_left().map_or(TICK, |left| left.min(TICK))
    }

    /// Asks a source for points; returns whether more can follow.
    fn propose(&mut self, room: usize) -> bool {
        let clock = Instant::now();
        let proposal = self.bandit.propose(room);
        self.strategy_time += clock.elapsed();
        let places = match proposal {
            Ok(places) => places,
            Err(Proposal::Wait) if self.candidates.out() > 0 => return true,
            // It waits for outcomes that will not come.
            Err(_) => return false,
        };
        for place in places {
            let decoded = self.bandit.decode(&place);
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
        let origin = self.origin(&place);
        match self.candidates.admit(schedule, Some(place.clone()), origin) {
            Admission::New(number) => {
                self.chosen += 1;
                self.submit(number);
            }
            Admission::InFlight => {}
            Admission::AlreadyMeasured(outcome) => {
                self.chosen += 1;
                self.tell(vec![(place, outcome)]);
            }
        }
    }

    /// The origin of a point.
    fn origin(&self, place: &ArmPoint) -> Origin {
        let strategy = || Origin::Search(self.tuner.strategy_name().to_owned());
        self.bandit.origin(place).unwrap_or_else(strategy)
    }

    /// Reports a point without a legal schedule.
    fn refuse(&mut self, place: ArmPoint, outcome: Outcome) {
        self.refused += 1;
        let outcome = self.tuner.told(outcome);
        let candidate = Candidate {
            schedule: Schedule::default(),
            text: String::new(),
            points: vec![place.clone()],
            origin: self.origin(&place),
        };
        self.count(&candidate, &outcome);
        self.record(0, &candidate, &outcome);
        self.tell(vec![(place, outcome)]);
    }

    fn tell(&mut self, observations: Vec<(ArmPoint, Outcome)>) {
        let clock = Instant::now();
        self.bandit.observe(observations);
        self.strategy_time += clock.elapsed();
    }

    fn finished(&mut self, finished: TrialResult) {
        let TrialResult { id, outcome, spent, .. } = finished;
        let outcome = self.tuner.told(outcome);
        if let Some(span) = self.spans.remove(&id) {
            let milliseconds = |part: Duration| part.as_secs_f64() * 1e3;
            span.record("outcome", outcome.kind());
            span.record("build_ms", milliseconds(spent.build));
            span.record("check_ms", milliseconds(spent.check));
            span.record("time_ms", milliseconds(spent.time));
        }
        for (sum, part) in self.spent.iter_mut().zip([spent.build, spent.check, spent.time]) {
            *sum += part;
        }
        self.tried += 1;
        let Some(candidate) = self.candidates.back(id, &outcome) else { return };
        let number = self.record(id, &candidate, &outcome);
        self.defects.note(self.tuner, self.journal, &candidate.text, &outcome);
        self.progress.trials += u64::from(outcome.is_trial());
        self.count(&candidate, &outcome);
        let is_default = self.default.1 == Some(id);
        let mut is_best = false;
        if let Some(timing) = outcome.timing() {
            if is_default {
                self.progress.default_seconds = Some(timing.seconds);
            }
            if !timing.cut {
                is_best = self.lower_best(timing.seconds);
                if is_best {
                    tracing::info!(trial = id, seconds = timing.seconds, "best so far");
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
}
