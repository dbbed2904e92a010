//! The fastest candidates of a key.

use tensorwright_records::{RunSummary, Trial, TrialId};

use super::space::{SpaceName, space_of};
use crate::importance::name_of;
use crate::meta::Parameter;
use crate::model::Candidate;

/// The number of candidates to keep.
const MOST: usize = 10;

/// One of the fastest candidates.
#[derive(Debug, Clone)]
pub(super) struct FastCandidate {
    pub(super) id: TrialId,
    pub(super) trial: Trial,
    strategy: String,
    space: SpaceName,
    pub(super) seconds: f64,
    spread: f64,
}

/// The fastest candidates with different schedules, the fastest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Fastest(Vec<FastCandidate>);

impl Fastest {
    /// Offers a candidate that was timed in full.
    pub(super) fn offer(&mut self, run: &RunSummary, trial: &Trial, seconds: f64) {
        if self.0.len() >= MOST && self.0.last().is_some_and(|last| last.seconds <= seconds) {
            return;
        }
        let same = |found: &FastCandidate| {
            found.trial.schedule == trial.schedule && !trial.schedule.is_empty()
        };
        if let Some(at) = self.0.iter().position(same) {
            if self.0[at].seconds <= seconds {
                return;
            }
            self.0.remove(at);
        }
        let found = FastCandidate {
            id: TrialId { run: run.info.id.clone(), number: trial.number },
            trial: trial.clone(),
            strategy: run.info.strategy.clone(),
            space: space_of(run, trial),
            seconds,
            spread: trial.outcome.timing().map_or(0.0, |timing| timing.spread),
        };
        let at = self.0.partition_point(|other| other.seconds <= seconds);
        self.0.insert(at, found);
        self.0.truncate(MOST);
    }

    /// The fastest candidate.
    pub(super) fn first(&self) -> Option<&FastCandidate> {
        self.0.first()
    }

    /// Converts to a table, with the parameters of each candidate's space.
    pub(super) fn table<'p>(
        &self,
        parameters: impl Fn(&SpaceName) -> &'p [Parameter],
    ) -> Vec<Candidate> {
        let Some(first) = self.0.first() else { return Vec::new() };
        let row = |(place, found): (usize, &FastCandidate)| Candidate {
            trial: found.id.clone(),
            strategy: found.strategy.clone(),
            origin: found.trial.origin.to_string(),
            algorithm: found.trial.algorithm.clone(),
            seconds: found.seconds,
            spread: found.spread,
            values: values(found, (place > 0).then_some(first), parameters(&found.space)),
        };
        self.0.iter().enumerate().map(row).collect()
    }
}

/// The values of a candidate's parameters: all, or those that differ from another candidate's.
fn values(
    found: &FastCandidate,
    from: Option<&FastCandidate>,
    parameters: &[Parameter],
) -> Vec<(String, String)> {
    if parameters.is_empty() || from.is_some_and(|from| from.space != found.space) {
        return Vec::new();
    }
    let other = from.map(|from| from.trial.point.as_slice());
    let differs = |at: usize, rank: u32| other.is_none_or(|point| point.get(at) != Some(&rank));
    let value = |(at, rank): (usize, u32)| {
        let parameter = name_of(parameters, at);
        let value = parameter.value(rank);
        (parameter.name, value)
    };
    let ranks = found.trial.point.iter().copied().enumerate();
    ranks.filter(|(at, rank)| differs(*at, *rank)).map(value).collect()
}
