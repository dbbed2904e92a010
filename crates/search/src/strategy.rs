//! [`SearchStrategy`]: ask and tell.

use tensorwright_outcome::Outcome;
use tensorwright_space::Point;

/// A search: it is asked for points and told what became of them.
///
/// - Every point that it proposes is one of its space, is allowed by the space's rules, and was
///   neither proposed nor observed before.
/// - It may be told of points that it did not propose: the default schedule, records of an earlier
///   run, what another strategy of a portfolio tried.
/// - Several points may be out at a time, and outcomes come back in any order, or never.
/// - For one seed and one sequence of calls it always answers the same.
pub trait SearchStrategy: Send {
    /// Points to try next, at most so many.
    fn propose(&mut self, at_most: usize) -> Proposal;

    /// What became of points.
    fn observe(&mut self, observations: &[Observation]);

    /// The strategy inside this one that proposed a point which is out; `None` if it was this one.
    fn proposer(&self, point: &Point) -> Option<&'static str> {
        let _ = point;
        None
    }
}

/// What a strategy wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// These points tried; at least one.
    Points(Vec<Point>),
    /// Outcomes of points that are out; it can say nothing before.
    Wait,
    /// Nothing: there is no point left that it would try.
    Exhausted,
}

/// What became of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The point.
    pub point: Point,
    /// What became of it.
    pub outcome: Outcome,
}

impl Observation {
    /// What strategies maximise: calls per second, and zero for a candidate that was not measured,
    /// so that its traits are not inherited (OpEvo section 4.2).
    #[must_use]
    pub fn fitness(&self) -> f64 {
        match self.outcome.cost() {
            Some(seconds) if seconds > 0.0 && seconds.is_finite() => 1.0 / seconds,
            _ => 0.0,
        }
    }
}

/// What every strategy can be told at its start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StrategySettings {
    /// Decides every random choice.
    pub seed: u64,
    /// Points worth trying first, best first: those of similar programs, or a point near the default
    /// schedule. Points outside the space or its rules are left out.
    pub start: Vec<Point>,
}
