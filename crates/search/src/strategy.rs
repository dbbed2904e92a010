//! [`SearchStrategy`]: the ask-and-tell interface of searches.

use tensorwright_outcome::Outcome;
use tensorwright_space::Point;

/// A search strategy: it proposes points and observes their outcomes.
///
/// - Every proposed point belongs to its space, satisfies the space's rules, and was neither
///   proposed nor observed before.
/// - It may observe points that it did not propose: the default schedule, records of an earlier
///   run, trials of another strategy in a portfolio.
/// - Several points may be pending, and outcomes arrive in any order, or never.
/// - It is deterministic for a seed and a sequence of calls.
pub trait SearchStrategy: Send {
    /// Proposes points to try next, at most `at_most`.
    fn propose(&mut self, at_most: usize) -> Proposal;

    /// Observes outcomes of points.
    fn observe(&mut self, observations: &[Observation]);

    /// The inner strategy that proposed a pending point; `None` if it was this one.
    fn proposer(&self, point: &Point) -> Option<&'static str> {
        let _ = point;
        None
    }
}

/// The answer of a strategy to a request for points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// Points to try; at least one.
    Points(Vec<Point>),
    /// No proposal until outcomes of pending points arrive.
    Wait,
    /// No points left to try.
    Exhausted,
}

/// The outcome of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The point.
    pub point: Point,
    /// Its outcome.
    pub outcome: Outcome,
}

impl Observation {
    /// The fitness that strategies maximise: calls per second, and zero for unmeasured candidates,
    /// so that their traits are not inherited (OpEvo section 4.2).
    #[must_use]
    pub fn fitness(&self) -> f64 {
        match self.outcome.cost() {
            Some(seconds) if seconds > 0.0 && seconds.is_finite() => 1.0 / seconds,
            _ => 0.0,
        }
    }
}

/// The initial settings of a strategy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StrategySettings {
    /// The random seed.
    pub seed: u64,
    /// Points to try first, best first: those of similar programs, or a point near the default
    /// schedule. Illegal points are skipped.
    pub start: Vec<Point>,
}
