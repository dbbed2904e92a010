//! [`Source`]: proposes schedules and learns from their outcomes.
//!
//! A [space](SpaceSource) with a strategy is one source, a [search over
//! pipelines](crate::pipelines::PipelineSource) another. Each names its schedules by points,
//! decodes them, and receives their outcomes.

use std::collections::VecDeque;

use tensorwright::Schedule;
use tensorwright_policy::ScheduleSpace;
use tensorwright_records::Origin;
use tensorwright_search::{Observation, Proposal, SearchStrategy};
use tensorwright_space::{Point, Rejection};

/// Proposes schedules and learns from their outcomes.
pub(crate) trait Source {
    /// At most `at_most` points to try next.
    fn propose(&mut self, at_most: usize) -> Proposal;

    /// The schedule of a point it proposed.
    fn decode(&mut self, point: &Point) -> Result<Schedule, Rejection>;

    /// Receives the outcomes of points.
    fn observe(&mut self, observations: &[Observation]);

    /// The origin of a point in flight; `None` if the strategy of the run proposed it.
    fn origin(&self, point: &Point) -> Option<Origin>;

    /// The space of its points, if points mean the same in every run.
    fn space(&self) -> Option<&ScheduleSpace>;
}

/// A space with the strategy that searches it.
pub(crate) struct SpaceSource {
    pub(crate) space: ScheduleSpace,
    pub(crate) strategy: Box<dyn SearchStrategy>,
    /// The start points of the search, with their origins.
    pub(crate) seeds: Vec<(Point, Origin)>,
}

impl Source for SpaceSource {
    fn propose(&mut self, at_most: usize) -> Proposal {
        self.strategy.propose(at_most)
    }

    fn decode(&mut self, point: &Point) -> Result<Schedule, Rejection> {
        self.space.decode(point)
    }

    fn observe(&mut self, observations: &[Observation]) {
        self.strategy.observe(observations);
    }

    /// The portfolio member or the start point it comes from.
    fn origin(&self, point: &Point) -> Option<Origin> {
        let member = self.strategy.proposer(point);
        let member = member.map(|name| Origin::Search(name.to_owned()));
        let seed = || self.seeds.iter().find(|(seed, _)| seed == point);
        member.or_else(|| seed().map(|(_, origin)| origin.clone()))
    }

    fn space(&self) -> Option<&ScheduleSpace> {
        Some(&self.space)
    }
}

/// Proposes only the top-ranked points of the cost model, in its order.
pub(crate) struct RankedStrategy(pub(crate) VecDeque<Point>);

impl SearchStrategy for RankedStrategy {
    fn propose(&mut self, at_most: usize) -> Proposal {
        let count = at_most.min(self.0.len());
        let points: Vec<Point> = self.0.drain(..count).collect();
        if points.is_empty() { Proposal::Exhausted } else { Proposal::Points(points) }
    }

    fn observe(&mut self, _: &[Observation]) {}
}
