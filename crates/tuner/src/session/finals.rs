//! The finals: measures the best candidates again in turns, and declares the winner.
//!
//! The *incumbent* is the declared best of the key, even if the run began without records; without
//! one, the default schedule. It is measured together with the candidates and is replaced only by
//! one that a [paired test](tensorwright::runtime::timing::paired) finds faster. A declaration
//! names the best that it replaces. If another run has declared a best in the meantime, the records
//! refuse it, and the two are measured together.

use std::time::Instant;

use serde_json::{Value, json};
use tensorwright::Schedule;
use tensorwright::runtime::timing::paired;
use tensorwright_measure::Finalist;
use tensorwright_outcome::Outcome;
use tensorwright_records::{Best, Declared, Error, Origin, TrialId};

use super::Session;
use crate::candidates::Candidate;
use crate::event::{Event, Gain, Winner};
use crate::mode::Mode;
use crate::names::RecordNames;

/// The most rematches against a best that another run has declared in the meantime.
const MOST_REMATCHES: usize = 3;

/// A schedule in the finals.
#[derive(Debug, Clone)]
struct Entrant {
    candidate: Candidate,
    /// Its trial, if it was measured before.
    trial: Option<TrialId>,
    /// Its declaration, if it has one.
    declared: Option<Declared>,
}

/// The result of the finals.
struct Contest {
    entrants: Vec<Entrant>,
    finalists: Vec<Finalist>,
    /// The index of the winner.
    winner: usize,
    gain: Gain,
}

impl Contest {
    /// Picks the winner. The first entrant is the incumbent; if it cannot be measured here, the
    /// next one is.
    fn of(entrants: Vec<Entrant>, finalists: Vec<Finalist>) -> Option<Self> {
        let rounds: Vec<Vec<f64>> =
            finalists.iter().map(|finalist| finalist.rounds.clone()).collect();
        let incumbent = rounds.iter().position(|rounds| !rounds.is_empty())?;
        let faster = paired::faster(&rounds, incumbent, paired::LEVEL);
        let (winner, gain) = match faster {
            Some(found) => (found.place, Gain::Significant { p_value: found.p_value }),
            None => (incumbent, Gain::None),
        };
        Some(Self { entrants, finalists, winner, gain })
    }

    /// Picks the winner in the modes in which the model chooses: its choice wins even if another is
    /// faster, but replaces a declared best only if the test finds it faster.
    fn by_choice(self) -> Self {
        let measured = |place: &usize| !self.finalists[*place].rounds.is_empty();
        let places = || (0..self.entrants.len()).filter(measured);
        let incumbent = places().find(|place| self.entrants[*place].declared.is_some());
        let is_choice = |place: &usize| self.entrants[*place].candidate.origin == Origin::Pipeline;
        let choice = places().find(is_choice);
        let (winner, gain) = match (incumbent, choice) {
            (Some(incumbent), Some(choice)) => {
                let rounds = [incumbent, choice].map(|place| self.finalists[place].rounds.clone());
                match paired::faster(&rounds, 0, paired::LEVEL) {
                    Some(found) => (choice, Gain::Significant { p_value: found.p_value }),
                    None => (incumbent, Gain::None),
                }
            }
            (Some(incumbent), None) => (incumbent, Gain::None),
            (None, Some(choice)) if choice != self.winner => (choice, Gain::None),
            (None, _) => (self.winner, self.gain),
        };
        Self { winner, gain, ..self }
    }

    fn winner(&self) -> &Entrant {
        &self.entrants[self.winner]
    }

    fn seconds(&self, place: usize) -> Option<f64> {
        self.finalists.get(place).and_then(|finalist| finalist.outcome.cost())
    }

    /// The seconds of a schedule, if it took part: the winner's time scaled by the ratio of their
    /// rounds, on which the decision also rests.
    fn seconds_of(&self, text: &str) -> Option<f64> {
        let place = self.entrants.iter().position(|entrant| entrant.candidate.text == text)?;
        let rounds = |place: usize| &self.finalists[place].rounds;
        let ratio = paired::ratio(rounds(self.winner), rounds(place))?;
        Some(self.seconds(self.winner)? / ratio)
    }
}

impl Session<'_> {
    /// Measures the best candidates, the incumbent and the default schedule again in turns, and
    /// declares the winner.
    pub(super) fn finals(&mut self) -> Winner {
        if self.measured.is_empty() && self.deadline().is_some_and(|until| until <= Instant::now())
        {
            return self.without_finals();
        }
        let best = self.stored_best();
        let entrants = self.entrants(best.as_ref());
        (self.watch)(&Event::Finalists { count: entrants.len(), progress: &self.progress });
        let default = self.default.0.to_string();
        let Some(mut contest) = self.contest(entrants) else {
            return self.without_finals();
        };
        if self.tuner.mode == Mode::OneShot {
            contest = contest.by_choice();
        }
        let mut default_seconds = contest.seconds_of(&default);
        let mut replaces = best.map(|best| best.id);
        for _ in 0..MOST_REMATCHES {
            let outrun = self.declare(&contest, replaces.as_ref());
            let Some(rival) = outrun.and_then(|()| self.stored_best()) else { break };
            // Another best has replaced it.
            let challenger = Entrant { declared: None, ..contest.winner().clone() };
            let entrants = vec![self.incumbent(&rival), Some(challenger)];
            let Some(rematch) = self.contest(entrants.into_iter().flatten().collect()) else {
                break;
            };
            // Only the first finals include the default schedule: scale its time to these.
            let winner = contest.seconds(contest.winner);
            let scale = rematch.seconds_of(&contest.winner().candidate.text).zip(winner);
            default_seconds = default_seconds.zip(scale).map(|(time, (new, old))| time * new / old);
            replaces = Some(rival.id);
            contest = rematch;
        }
        let seconds = contest.seconds(contest.winner).unwrap_or(f64::INFINITY);
        let default_seconds = default_seconds.or(self.progress.default_seconds).unwrap_or(seconds);
        let Candidate { schedule, origin, .. } = contest.winner().candidate.clone();
        Winner { schedule, origin, seconds, default_seconds, gain: contest.gain }
    }

    fn contest(&mut self, entrants: Vec<Entrant>) -> Option<Contest> {
        let schedules: Vec<Schedule> =
            entrants.iter().map(|entrant| entrant.candidate.schedule.clone()).collect();
        let (number, time) = (self.candidates.number(), self.tuner.budget.for_finalists());
        let finalists = self.executor.finalists(number, &schedules, time, self.finals_deadline());
        Contest::of(entrants, finalists)
    }

    /// The declared best of the key, even if the run began without records.
    fn stored_best(&mut self) -> Option<Best> {
        self.executor.best(self.journal, &self.key)
    }

    /// The declared best, if it can still be parsed and its precision is allowed.
    fn incumbent(&self, best: &Best) -> Option<Entrant> {
        Entrant::stored(best, &self.names).filter(|entrant| {
            self.tuner.goal.precision.allows(entrant.candidate.schedule.precision())
        })
    }

    /// The incumbent, the default schedule and the best candidates: as many as there is time for.
    fn entrants(&mut self, best: Option<&Best>) -> Vec<Entrant> {
        self.measured.sort_by(|a, b| a.0.total_cmp(&b.0));
        let seconds = [best.map(|best| best.seconds), self.progress.default_seconds];
        let places = self.finalists_in_time(&seconds.into_iter().flatten().collect::<Vec<f64>>());
        let mut entrants: Vec<Entrant> =
            best.and_then(|best| self.incumbent(best)).into_iter().collect();
        let mut enter = |entrant: Entrant| {
            let text = &entrant.candidate.text;
            let is_new = entrants.iter().all(|other| other.candidate.text != *text);
            if is_new {
                entrants.push(entrant);
            }
            is_new
        };
        let default = self.default.0.clone();
        let text = default.to_string();
        let measured = self.measured.iter().find(|(_, candidate, _)| candidate.text == text);
        let trial = measured.and_then(|(_, _, trial)| trial.clone());
        let origin = Origin::Default;
        let candidate = Candidate { schedule: default, text, points: Vec::new(), origin };
        enter(Entrant { candidate, trial, declared: None });
        let mut left = places;
        for (_, candidate, trial) in &self.measured {
            if left == 0 {
                break;
            }
            let (candidate, trial) = (candidate.clone(), trial.clone());
            left -= usize::from(enter(Entrant { candidate, trial, declared: None }));
        }
        entrants
    }

    /// Declares the winner as the successor of the best that it was measured against. `Some` if the
    /// records have another best by now.
    fn declare(&mut self, contest: &Contest, replaces: Option<&TrialId>) -> Option<()> {
        let winner = contest.winner();
        // A fleet's server accepts only declarations of the run's own trials.
        if winner.declared.is_some() && self.executor.keeps_trials() {
            return None;
        }
        let seconds = contest.seconds(contest.winner)?;
        let trial = match winner.trial.clone() {
            Some(trial) => trial,
            None => self.late_trial(&winner.candidate, &contest.finalists[contest.winner].outcome),
        };
        let times: Vec<Option<f64>> =
            (0..contest.entrants.len()).map(|place| contest.seconds(place)).collect();
        let default = contest.entrants.iter().find(|e| e.candidate.origin == Origin::Default);
        let default_seconds =
            default.and_then(|default| contest.seconds_of(&default.candidate.text));
        // A best that stays is declared again with its new times and its old predecessor.
        let (p_value, replaces) = match (&winner.declared, contest.gain) {
            (Some(earlier), _) => {
                (earlier.against.get("p_value").and_then(Value::as_f64), earlier.replaces.as_ref())
            }
            (None, Gain::Significant { p_value }) => (Some(p_value), replaces),
            (None, Gain::None) => (None, replaces),
        };
        let best = Declared {
            trial,
            seconds,
            against: json!({ "finalists": times, "default_seconds": default_seconds,
                             "p_value": p_value }),
            declared: tensorwright_records::now(),
            replaces: replaces.cloned(),
        };
        let kept = self.executor.declare(self.journal, &self.key, &best);
        if let Err(Error::Outrun(_)) = kept {
            return Some(());
        }
        self.note(kept);
        self.vouch(&winner.candidate.text);
        None
    }

    /// Records a winner that was measured only in the finals as an ordinary trial.
    fn late_trial(&mut self, candidate: &Candidate, outcome: &Outcome) -> TrialId {
        self.progress.trials += u64::from(outcome.is_trial());
        self.count(candidate, outcome);
        let number = self.record(0, candidate, outcome);
        TrialId { run: self.run.clone(), number }
    }

    /// Without finals (the device is lost, or there was no time) the first times decide, and
    /// nothing is declared.
    fn without_finals(&self) -> Winner {
        let first = self.measured.first();
        let default_seconds = self.progress.default_seconds;
        let (schedule, origin, seconds) = match first {
            Some((seconds, candidate, _)) => {
                (candidate.schedule.clone(), candidate.origin.clone(), *seconds)
            }
            None => {
                let seconds = default_seconds.unwrap_or(f64::INFINITY);
                (self.default.0.clone(), Origin::Default, seconds)
            }
        };
        let default_seconds = default_seconds.unwrap_or(seconds);
        Winner { schedule, origin, seconds, default_seconds, gain: Gain::None }
    }
}

impl Entrant {
    /// The declared best, if it can still be parsed.
    fn stored(best: &Best, names: &RecordNames<'_>) -> Option<Self> {
        let schedule = names.canonical(&best.trial.schedule)?;
        let text = schedule.to_string();
        let candidate = Candidate { schedule, text, points: Vec::new(), origin: Origin::Record };
        let declared = best.declared.clone();
        Some(Self { candidate, trial: Some(best.id.clone()), declared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorwright_outcome::Timing;

    fn entrant(origin: &str, is_declared: bool) -> Entrant {
        let candidate = Candidate {
            schedule: Schedule::default(),
            text: origin.to_owned(),
            points: Vec::new(),
            origin: origin.into(),
        };
        let trial = TrialId { run: tensorwright_records::RunId::named("earlier"), number: 7 };
        let declared =
            Declared { trial, seconds: 1.0, against: Value::Null, declared: 1, replaces: None };
        Entrant { candidate, trial: None, declared: is_declared.then_some(declared) }
    }

    fn finalist(seconds: f64) -> Finalist {
        let rounds: Vec<f64> =
            (0..12).map(|round| seconds * (1.0 + 0.01 * f64::from(round))).collect();
        let outcome = Outcome::Measured(Timing { seconds, ..Timing::default() });
        Finalist { outcome, rounds }
    }

    #[test]
    fn the_incumbent_stays_unless_something_is_faster() {
        let entrants =
            || vec![entrant("record", true), entrant("default", false), entrant("new", false)];
        let slower =
            Contest::of(entrants(), vec![finalist(1.0), finalist(1.3), finalist(1.1)]).unwrap();
        assert_eq!((slower.winner, slower.gain), (0, Gain::None));
        let faster =
            Contest::of(entrants(), vec![finalist(1.0), finalist(1.3), finalist(0.9)]).unwrap();
        assert_eq!(faster.winner, 2);
        assert!(matches!(faster.gain, Gain::Significant { p_value } if p_value < 0.01));
        assert!((faster.seconds_of("default").unwrap() - 1.3).abs() < 1e-9);
    }

    #[test]
    fn where_the_model_chooses_the_default_schedule_does_not_compete() {
        let entrants = || vec![entrant("default", false), entrant("pipeline", false)];
        let slower = Contest::of(entrants(), vec![finalist(1.0), finalist(1.1)]).unwrap();
        assert_eq!(slower.winner, 0);
        let slower = slower.by_choice();
        assert_eq!((slower.winner, slower.gain), (1, Gain::None));
        assert!((slower.seconds_of("default").unwrap() - 1.0).abs() < 1e-9);
        let faster = Contest::of(entrants(), vec![finalist(1.0), finalist(0.9)]).unwrap();
        assert!(matches!(faster.by_choice().gain, Gain::Significant { .. }));
        // A schedule that cannot be measured has no time to keep.
        let wrong = Finalist::from(Outcome::WrongResult { reason: "x".to_owned() });
        let wrong = Contest::of(entrants(), vec![finalist(1.0), wrong]).unwrap();
        assert_eq!(wrong.by_choice().winner, 0);
    }

    #[test]
    fn where_the_model_chooses_a_declared_best_stays_unless_the_choice_is_faster() {
        let entrants =
            || vec![entrant("record", true), entrant("default", false), entrant("pipeline", false)];
        let winner = |times: [f64; 3]| {
            let contest = Contest::of(entrants(), times.map(finalist).into()).unwrap().by_choice();
            (contest.winner, contest.gain)
        };
        assert_eq!(winner([1.0, 0.8, 1.1]), (0, Gain::None));
        assert!(matches!(winner([1.0, 0.8, 0.9]), (2, Gain::Significant { .. })));
        // The same choice again is the declared best.
        let again = vec![entrant("record", true), entrant("default", false)];
        let again = Contest::of(again, vec![finalist(1.0), finalist(0.5)]).unwrap().by_choice();
        assert_eq!((again.winner, again.gain), (0, Gain::None));
    }

    #[test]
    fn a_winner_is_said_to_be_as_much_faster_as_its_rounds_say() {
        let rounds = |times: [f64; 3]| -> Vec<f64> { times.repeat(8) };
        let finalist =
            |seconds: f64, times| Finalist { rounds: rounds(times), ..finalist(seconds) };
        // The overall times say otherwise: they include rounds of a third kernel at other moments.
        let finalists = vec![finalist(1.0, [1.0, 2.0, 4.0]), finalist(1.2, [0.5, 1.0, 2.0])];
        let contest =
            Contest::of(vec![entrant("default", false), entrant("new", false)], finalists).unwrap();
        assert_eq!(contest.winner, 1);
        assert!((contest.seconds_of("default").unwrap() - 2.4).abs() < 1e-9);
    }

    #[test]
    fn an_incumbent_that_fails_here_gives_way_to_the_default_schedule() {
        let entrants =
            || vec![entrant("record", true), entrant("default", false), entrant("new", false)];
        let wrong = || Finalist::from(Outcome::WrongResult { reason: "x".to_owned() });
        let contest = Contest::of(entrants(), vec![wrong(), finalist(1.0), finalist(1.0)]).unwrap();
        assert_eq!((contest.winner, contest.gain), (1, Gain::None));
        let contest = Contest::of(entrants(), vec![wrong(), wrong(), finalist(1.0)]).unwrap();
        assert_eq!(contest.winner, 2);
        assert!(Contest::of(entrants(), vec![wrong(), wrong(), wrong()]).is_none());
    }
}
