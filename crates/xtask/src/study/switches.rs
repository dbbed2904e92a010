//! A search with some optimisations switched off.

use std::time::Duration;

use tensorwright_lang::program::Program;
use tensorwright_machine::Goal;
use tensorwright_pipeline::{BeamOptions as Search, Outcome};
use tensorwright_policy::{PipelineSearch, pipeline_search};

use crate::processor::thread_seconds;

/// The enabled optimisations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Switches {
    pub(super) memoization: bool,
    pub(super) sampling: bool,
    pub(super) freezing: bool,
}

impl Switches {
    /// With memoization, as in table 1: the last one is without the others.
    pub(super) const FOUR: [Self; 4] = [
        Self { memoization: true, sampling: true, freezing: true },
        Self { memoization: true, sampling: true, freezing: false },
        Self { memoization: true, sampling: false, freezing: true },
        Self { memoization: true, sampling: false, freezing: false },
    ];

    /// All combinations, as in table 2: the last one is without any.
    pub(super) fn eight() -> Vec<Self> {
        let without = Self::FOUR.map(|switches| Self { memoization: false, ..switches });
        Self::FOUR.into_iter().chain(without).collect()
    }

    /// The column head.
    pub(super) fn head(self) -> String {
        let named =
            [(self.memoization, "memo"), (self.sampling, "sampling"), (self.freezing, "freezing")];
        let on: Vec<&str> =
            named.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect();
        if on.is_empty() { "none".to_owned() } else { on.join(", ") }
    }

    /// The enabled optimisations except memoization.
    pub(super) fn beside_memoization(self) -> String {
        let head = (Self { memoization: false, ..self }).head();
        if head == "none" { "neither".to_owned() } else { head }
    }

    fn options(self, seed: u64) -> Search {
        let mut options = Search::beam().with_seed(seed);
        options.memoization = self.memoization;
        options.sampling = self.sampling;
        options.freezing = self.freezing;
        options
    }
}

/// The result of a search, and its CPU time.
pub(super) struct SearchResult {
    pub(super) outcome: Outcome,
    pub(super) time: Duration,
    /// Whether the time limit ended it.
    pub(super) is_ended: bool,
    pub(super) pipeline: Box<dyn PipelineSearch>,
}

/// A full beam search with a time limit.
pub(super) fn search(
    program: &Program,
    goal: &Goal,
    switches: Switches,
    seed: u64,
    longest: Duration,
) -> Result<SearchResult, String> {
    // CPU time excludes other work on the machine.
    let start = thread_seconds();
    let taken = || Duration::from_secs_f64((thread_seconds() - start).max(0.0));
    let pipeline = pipeline_search(program, goal, None).map_err(|error| error.to_string())?;
    let mut is_ended = false;
    let outcome = pipeline.search_while(&switches.options(seed), &mut || {
        is_ended |= taken() > longest;
        !is_ended
    });
    Ok(SearchResult { outcome, time: taken(), is_ended, pipeline })
}
