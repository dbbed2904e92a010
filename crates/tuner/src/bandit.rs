//! [`SourceBandit`]: a multi-armed bandit over the sources of schedules.
//!
//! Each algorithm of a program (as written, or a rewriting) has a space of its own, with parameters
//! of its own, so each has its own search; a search over pipelines is one more source. Every source
//! gets some first trials. Sources that fall behind are asked seldom but never dropped: a few
//! trials do not show how good the best schedule of a space is.

use tensorwright::Schedule;
use tensorwright_outcome::Outcome;
use tensorwright_policy::ScheduleSpace;
use tensorwright_records::{Origin, Trial};
use tensorwright_search::{Observation, Proposal};
use tensorwright_space::{Point, Rejection};

use crate::source::Source;

/// First trials of every source.
const BEGINNING: u64 = 6;

/// After its first trials, a source is *behind* if its best is slower than the overall best by this
/// factor.
const BEHIND: f64 = 1.15;

/// One turn in this many goes to another close source instead of the leader.
const TURNS: u64 = 4;

/// One turn in this many goes to a source that is behind.
const SELDOM: u64 = 16;

/// A source and its results so far.
struct Arm {
    source: Box<dyn Source>,
    best: Option<f64>,
    proposed: u64,
    exhausted: bool,
}

/// A point of one of the sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArmPoint {
    /// The index of the arm.
    pub(crate) arm: usize,
    pub(crate) point: Point,
}

/// The sources of a run, as arms of a bandit.
pub(crate) struct SourceBandit {
    arms: Vec<Arm>,
    turn: u64,
}

impl SourceBandit {
    /// A bandit over sources that have not proposed anything yet.
    pub(crate) fn new(sources: Vec<Box<dyn Source>>) -> Self {
        let begin = |source| Arm { source, best: None, proposed: 0, exhausted: false };
        Self { arms: sources.into_iter().map(begin).collect(), turn: 0 }
    }

    /// The spaces among the sources.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = &ScheduleSpace> {
        self.arms.iter().filter_map(|arm| arm.source.space())
    }

    /// The space of an arm, if it has one.
    pub(crate) fn space(&self, arm: usize) -> Option<&ScheduleSpace> {
        self.arms.get(arm).and_then(|arm| arm.source.space())
    }

    /// The schedule of a point.
    pub(crate) fn decode(&mut self, place: &ArmPoint) -> Option<Result<Schedule, Rejection>> {
        self.arms.get_mut(place.arm).map(|arm| arm.source.decode(&place.point))
    }

    /// Asks the next source for at most `room` points.
    pub(crate) fn propose(&mut self, room: usize) -> Result<Vec<ArmPoint>, Proposal> {
        while let Some(number) = self.next() {
            let arm = &mut self.arms[number];
            match arm.source.propose(room) {
                Proposal::Points(points) => {
                    arm.proposed += points.len() as u64;
                    let place = |point| ArmPoint { arm: number, point };
                    return Ok(points.into_iter().map(place).collect());
                }
                Proposal::Wait => return Err(Proposal::Wait),
                Proposal::Exhausted => arm.exhausted = true,
            }
        }
        Err(Proposal::Exhausted)
    }

    /// Chooses the arm that proposes next.
    fn next(&mut self) -> Option<usize> {
        self.turn += 1;
        let able = |arm: &&(usize, &Arm)| !arm.1.exhausted;
        let all: Vec<(usize, &Arm)> = self.arms.iter().enumerate().collect();
        let able: Vec<(usize, &Arm)> = all.iter().filter(able).copied().collect();
        let least = able.iter().min_by_key(|(_, arm)| arm.proposed)?;
        if least.1.proposed < BEGINNING {
            return Some(least.0);
        }
        let best = self.arms.iter().filter_map(|arm| arm.best).fold(f64::INFINITY, f64::min);
        let time = |arm: &Arm| arm.best.unwrap_or(f64::INFINITY);
        let (close, behind): (Vec<_>, Vec<_>) =
            able.iter().copied().partition(|(_, arm)| time(arm) <= BEHIND * best);
        let forgotten = behind.iter().min_by_key(|(_, arm)| arm.proposed);
        if let Some(forgotten) = forgotten.filter(|_| self.turn.is_multiple_of(SELDOM)) {
            return Some(forgotten.0);
        }
        let candidates = if close.is_empty() { able } else { close };
        let leader = candidates.iter().min_by(|a, b| time(a.1).total_cmp(&time(b.1)))?;
        let others = candidates.iter().filter(|(number, _)| *number != leader.0);
        let other = others.min_by_key(|(_, arm)| arm.proposed);
        match other.filter(|_| self.turn.is_multiple_of(TURNS)) {
            Some(other) => Some(other.0),
            None => Some(leader.0),
        }
    }

    /// Reports outcomes to the sources of their points.
    pub(crate) fn observe(&mut self, observations: Vec<(ArmPoint, Outcome)>) {
        for (number, arm) in self.arms.iter_mut().enumerate() {
            let mine = observations.iter().filter(|(place, _)| place.arm == number);
            let mine: Vec<Observation> = mine
                .map(|(place, outcome)| Observation {
                    point: place.point.clone(),
                    outcome: outcome.clone(),
                })
                .collect();
            for cost in mine.iter().filter_map(|observation| observation.outcome.cost()) {
                arm.best = Some(arm.best.map_or(cost, |best| best.min(cost)));
            }
            if !mine.is_empty() {
                arm.source.observe(&mine);
            }
        }
    }

    /// The algorithm of a point, as named in the records.
    pub(crate) fn algorithm(&self, place: &ArmPoint) -> String {
        let space = self.space(place.arm);
        space.map_or_else(|| ScheduleSpace::AS_WRITTEN.to_owned(), ScheduleSpace::algorithm)
    }

    /// The origin of a point in flight; `None` if the strategy of the run proposed it.
    pub(crate) fn origin(&self, place: &ArmPoint) -> Option<Origin> {
        self.arms.get(place.arm)?.source.origin(&place.point)
    }

    /// The point of a recorded trial; `None` if it has none or no current space contains it.
    pub(crate) fn place(&self, trial: &Trial) -> Option<ArmPoint> {
        let is_of =
            |arm: &Arm| arm.source.space().is_some_and(|s| s.algorithm() == trial.algorithm);
        let arm = self.arms.iter().position(is_of)?;
        let point = Point::new(trial.point.clone());
        let known =
            trial.origin != Origin::Pipeline && self.space(arm)?.search_space().contains(&point);
        known.then_some(ArmPoint { arm, point })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tensorwright::{Cpu, Goal, Module};
    use tensorwright_policy::Preset;
    use tensorwright_search::registry::STRATEGIES;
    use tensorwright_search::{Strategy, StrategySettings};
    use tensorwright_space::Rng;

    use super::*;
    use crate::source::SpaceSource;

    /// The origins of the first `count` points of a search.
    fn origins(strategy: &str, count: usize) -> Vec<Option<Origin>> {
        let text = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
        let module = Module::parse("f.tc", text).unwrap();
        let program = module.def("f").unwrap().bind([("M", 64), ("N", 64), ("K", 64)]).unwrap();
        let goal = Goal::new(Cpu::avx2()).into();
        let options = Preset::Full.options();
        let space = ScheduleSpace::new(program.ir(), &goal, &options).unwrap();
        let strategy = tensorwright_search::find(strategy).unwrap();
        let near = space.search_space().sample_legal(&mut Rng::new(1)).unwrap();
        let ranked = space.ranked(1).into_iter().map(|point| (point, Origin::Ranked));
        let seeds: Vec<(Point, Origin)> =
            [(near, Origin::Near)].into_iter().chain(ranked).collect();
        let start = seeds.iter().map(|(point, _)| point.clone()).collect();
        let settings = StrategySettings { seed: 1, start };
        let strategy = strategy.start(Arc::clone(space.search_space()), &settings);
        let mut bandit = SourceBandit::new(vec![Box::new(SpaceSource { space, strategy, seeds })]);
        let next = || {
            let place = bandit.propose(1).ok()?.pop()?;
            Some(bandit.origin(&place))
        };
        std::iter::from_fn(next).take(count).collect()
    }

    #[test]
    fn points_say_where_they_come_from() {
        let seeds = [Origin::Near, Origin::Ranked].map(Some);
        for Strategy { name, .. } in STRATEGIES {
            let found = origins(name, 4);
            let (first, rest) = found.split_at(2);
            assert_eq!(first, seeds, "{name}");
            let is_member = |origin: &Option<Origin>| matches!(origin, Some(Origin::Search(_)));
            match *name {
                "portfolio" => assert!(rest.iter().all(is_member), "{rest:?}"),
                _ => assert!(rest.iter().all(Option::is_none), "{name}: {rest:?}"),
            }
        }
    }

    #[test]
    fn no_strategy_has_the_word_of_another_origin() {
        for Strategy { name, .. } in STRATEGIES {
            assert_eq!(Origin::from(*name), Origin::Search((*name).to_owned()));
        }
    }
}
