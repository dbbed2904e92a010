//! [`Candidates`]: schedules that were proposed, by what they are.
//!
//! Different points can mean the same schedule: parameters of a stage that is inlined have no effect,
//! nor has the tail of a loop that divides. Each schedule is measured once.

use std::collections::HashMap;

use crate::bandit::ArmPoint;
use tensorwright::Schedule;
use tensorwright_outcome::Outcome;
use tensorwright_records::Origin;

/// A schedule that is measured.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) schedule: Schedule,
    pub(crate) text: String,
    /// The points that mean it; none for the default schedule and for records.
    pub(crate) points: Vec<ArmPoint>,
    pub(crate) origin: Origin,
}

/// The schedules that are out or came back.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    out: HashMap<u64, Candidate>,
    by_text: HashMap<String, CandidateState>,
    next: u64,
}

/// What is known of a schedule.
#[derive(Debug, Clone)]
enum CandidateState {
    InFlight(u64),
    Done(Outcome),
}

/// What is to be done with a proposal.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It is to be measured, under this number.
    New(u64),
    /// It is being measured for another point.
    InFlight,
    /// It was measured before.
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

    /// A number that no candidate has.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Goes on where another process has left: a candidate is out under its number, and new ones get numbers beyond `next`.
    pub(crate) fn restore(&mut self, number: u64, candidate: Candidate) {
        self.next = self.next.max(number + 1);
        self.by_text.insert(candidate.text.clone(), CandidateState::InFlight(number));
        self.out.insert(number, candidate);
    }

    /// New candidates get numbers from here on.
    pub(crate) fn begin_at(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// A candidate that is out.
    pub(crate) fn get(&self, number: u64) -> Option<&Candidate> {
        self.out.get(&number)
    }

    /// The number of a schedule that is out.
    pub(crate) fn is_out(&self, text: &str) -> Option<u64> {
        match self.by_text.get(text) {
            Some(CandidateState::InFlight(number)) => Some(*number),
            _ => None,
        }
    }

    /// Notes what an earlier run found out about a schedule.
    pub(crate) fn recall(&mut self, text: String, outcome: Outcome) {
        self.by_text.insert(text, CandidateState::Done(outcome));
    }

    /// Forgets what is known of a schedule.
    pub(crate) fn without(mut self, text: &str) -> Self {
        self.by_text.remove(text);
        self
    }

    /// Takes back a candidate whose outcome is known.
    pub(crate) fn back(&mut self, number: u64, outcome: &Outcome) -> Option<Candidate> {
        let candidate = self.out.remove(&number)?;
        if matches!(outcome, Outcome::DeviceLost) {
            // It is not to blame and may be tried again.
            self.by_text.remove(&candidate.text);
        } else {
            self.by_text.insert(candidate.text.clone(), CandidateState::Done(outcome.clone()));
        }
        Some(candidate)
    }
}
