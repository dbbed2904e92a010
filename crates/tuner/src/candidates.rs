//! [`Candidates`]: proposed schedules without duplicates.
//!
//! Different points can stand for the same schedule: parameters of an inlined stage have no effect,
//! nor has the tail strategy of a loop whose size the factor divides. Each schedule is measured
//! once.

use std::collections::HashMap;

use crate::bandit::ArmPoint;
use tensorwright::Schedule;
use tensorwright_outcome::Outcome;
use tensorwright_records::Origin;

/// A schedule to measure.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) schedule: Schedule,
    pub(crate) text: String,
    /// The points that stand for it; none for the default schedule and for records.
    pub(crate) points: Vec<ArmPoint>,
    pub(crate) origin: Origin,
}

/// The schedules that are in flight or done.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    out: HashMap<u64, Candidate>,
    by_text: HashMap<String, CandidateState>,
    next: u64,
}

/// The state of a schedule.
#[derive(Debug, Clone)]
enum CandidateState {
    InFlight(u64),
    Done(Outcome),
}

/// How a proposal is handled.
#[derive(Debug)]
pub(crate) enum Admission {
    /// To be measured, under this number.
    New(u64),
    /// Being measured already, for another point.
    InFlight,
    /// Measured before.
    AlreadyMeasured(Outcome),
}

impl Candidates {
    pub(crate) fn out(&self) -> usize {
        self.out.len()
    }

    /// Admits a schedule; the number goes to the measurer.
    pub(crate) fn admit(
        &mut self,
        schedule: Schedule,
        point: Option<ArmPoint>,
        origin: Origin,
    ) -> Admission {
        let text = schedule.to_string();
        match self.by_text.get(&text) {
            Some(CandidateState::Done(outcome)) => Admission::AlreadyMeasured(outcome.clone()),
            Some(CandidateState::InFlight(number)) => {
                if let Some(candidate) = self.out.get_mut(number) {
                    candidate.points.extend(point);
                }
                Admission::InFlight
            }
            None => {
                let number = self.next;
                self.next += 1;
                self.by_text.insert(text.clone(), CandidateState::InFlight(number));
                let points = point.into_iter().collect();
                self.out.insert(number, Candidate { schedule, text, points, origin });
                Admission::New(number)
            }
        }
    }

    /// An unused number.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Resumes a run of another process: marks a candidate as in flight under its number; new
    /// numbers start beyond `next`.
    pub(crate) fn restore(&mut self, number: u64, candidate: Candidate) {
        self.next = self.next.max(number + 1);
        self.by_text.insert(candidate.text.clone(), CandidateState::InFlight(number));
        self.out.insert(number, candidate);
    }

    /// Starts the numbers of new candidates here.
    pub(crate) fn begin_at(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// A candidate in flight.
    pub(crate) fn get(&self, number: u64) -> Option<&Candidate> {
        self.out.get(&number)
    }

    /// The number of a schedule in flight.
    pub(crate) fn is_out(&self, text: &str) -> Option<u64> {
        match self.by_text.get(text) {
            Some(CandidateState::InFlight(number)) => Some(*number),
            _ => None,
        }
    }

    /// Records the outcome of a schedule in an earlier run.
    pub(crate) fn recall(&mut self, text: String, outcome: Outcome) {
        self.by_text.insert(text, CandidateState::Done(outcome));
    }

    /// Forgets a schedule.
    pub(crate) fn without(mut self, text: &str) -> Self {
        self.by_text.remove(text);
        self
    }

    /// Takes out a candidate whose outcome is known.
    pub(crate) fn back(&mut self, number: u64, outcome: &Outcome) -> Option<Candidate> {
        let candidate = self.out.remove(&number)?;
        if matches!(outcome, Outcome::DeviceLost) {
            // The candidate did not cause this and may be tried again.
            self.by_text.remove(&candidate.text);
        } else {
            self.by_text.insert(candidate.text.clone(), CandidateState::Done(outcome.clone()));
        }
        Some(candidate)
    }
}
