//! [`Source`]: something that proposes schedules and learns what became of them.
//!
//! A [space](SpaceSource) that a strategy searches is one, a [search over pipelines](crate::pipelines::PipelineSource) another. Each
//! names its schedules by points, decodes them, and is told their outcomes.

use std::collections::VecDeque;

use tensorwright::Schedule;
use tensorwright_policy::ScheduleSpace;
use tensorwright_records::Origin;
use tensorwright_search::{Observation, Proposal, SearchStrategy};
use tensorwright_space::{Point, Rejection};

/// Something that proposes schedules and learns what became of them.
pub(crate) trait Source {
    /// Points to try next, at most so many.
    fn propose(&mut self, at_most: usize) -> Proposal;

    /// The schedule of a point that it proposed.
    fn decode(&mut self, point: &Point) -> Result<Schedule, Rejection>;

    /// What became of points.
    fn observe(&mut self, observations: &[Observation]);

    /// Where a point that is out comes from; `None` if the strategy of the run made it.
    fn origin(&self, point: &Point) -> Option<Origin>;

    /// The space of its points, if they mean the same in every run.
    fn space(&self) -> Option<&ScheduleSpace>;
}

/// A space that a strategy searches.
pub(crate) struct SpaceSource {
    pub(crate) space: ScheduleSpace,
    pub(crate) strategy: Box<dyn SearchStrategy>,
    /// The points that the search begins with, and where they come from.
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

    /// A member of a portfolio, or what the search began with.
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

/// Points that the cost model of a space puts first, in its order: what a search begins with is all there is.
pub(crate) struct RankedStrategy(pub(crate) VecDeque<Point>);

impl SearchStrategy for RankedStrategy {
    fn propose(&mut self, at_most: usize) -> Proposal {
        let count = at_most.min(self.0.len());
        let points: Vec<Point> = self.0.drain(..count).collect();
        if points.is_empty() { Proposal::Exhausted } else { Proposal::Points(points) }
    }

    fn observe(&mut self, _: &[Observation]) {}
}
