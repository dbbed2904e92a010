//! [`Report`]: what a page shows.

use serde::Serialize;
use tensorwright_records::{Key, ProgramInfo, RunEnd, RunId, TrialId};

use crate::curve::{Curve, Median};
use crate::importance::Importance;

/// Which records a report is about; without a restriction about all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only the program with this hash: on every machine, with any number of threads.
    pub program: Option<String>,
    /// Only runs whose name begins like this.
    pub run: Option<String>,
}

/// What a page shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// When the page is made: milliseconds since 1970; for whoever makes it to fill in.
    pub made: Option<i64>,
    /// One section per key.
    pub sections: Vec<Section>,
    /// Keys that were left out because there are too many.
    pub left_out: usize,
}

/// What was found for a key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// The key.
    pub key: Key,
    /// The program.
    pub program: ProgramInfo,
    /// The name of the machine.
    pub machine: String,
    /// The result in a few numbers.
    pub headline: Headline,
    /// What the machine could do.
    pub roofs: Option<Roofs>,
    /// The runs by strategy, the best first.
    pub strategies: Vec<Strategy>,
    /// Where the candidates came from, the most successful first.
    pub origins: Vec<Proposals>,
    /// How candidates ended.
    pub outcomes: Outcomes,
    /// Candidates that were measured, thinned.
    pub dots: Dots,
    /// What each parameter explains.
    pub importance: Option<Importance>,
    /// The best schedule.
    pub winner: Option<Winner>,
    /// The fastest candidates.
    pub fastest: Vec<Candidate>,
    /// The runs, the latest first.
    pub runs: Vec<Line>,
    /// Runs that were left out because there are too many.
    pub runs_left_out: usize,
}

/// The result in a few numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Headline {
    /// The seconds of a call with the best schedule.
    pub seconds: Option<f64>,
    /// Whether the best was measured again in turns with other finalists.
    pub declared: bool,
    /// Its speed, if the program computes at all.
    pub gflops: Option<f64>,
    /// The share of the machine's roofline.
    pub roofline: Option<f64>,
    /// The seconds of a call with the default schedule.
    pub default_seconds: Option<f64>,
    /// How much faster the best is than the default schedule.
    pub speedup: Option<f64>,
    /// The trials that were looked at: candidates that were built, as `tune` counts them.
    pub trials: u64,
    /// Candidates that rules refused before anything was built.
    pub refused: u64,
    /// Trials of the key that were counted and removed.
    pub removed: u64,
    /// When the first run began: milliseconds since 1970.
    pub first: Option<i64>,
    /// When the last run began: milliseconds since 1970.
    pub last: Option<i64>,
}

/// What the machine could do, for this program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Roofs {
    /// Operations: 10^9 in a second.
    pub peak_gflops: f64,
    /// Memory traffic: 10^9 bytes in a second.
    pub peak_gbps: f64,
    /// Operations per byte that has to be moved.
    pub intensity: f64,
}

impl Roofs {
    /// The speed at which memory would hold the program back.
    #[must_use]
    pub fn memory_gflops(&self) -> f64 {
        self.peak_gbps * self.intensity
    }

    /// The lower of the two roofs.
    #[must_use]
    pub fn attainable_gflops(&self) -> f64 {
        self.memory_gflops().min(self.peak_gflops)
    }
}

/// The runs of a strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Strategy {
    /// Its name.
    pub name: String,
    /// How many runs there are.
    pub runs: usize,
    /// The trials of all its runs.
    pub trials: u64,
    /// The best seconds of each run, in the middle.
    pub median_best: Option<f64>,
    /// The best seconds of all runs.
    pub best: Option<f64>,
    /// Runs that came within 95 % of the speed of the best candidate of this report.
    pub reached: usize,
    /// The trial at which they did, in the middle of all runs.
    pub trials_to_reach: Option<f64>,
    /// The seconds after which they did, in the middle of all runs.
    pub seconds_to_reach: Option<f64>,
    /// The runs, each with its best so far; some are left out if there are many.
    pub curves: Vec<Curve>,
    /// The middle of all runs, if there are several.
    pub median: Option<Median>,
}

/// What came from one origin: the default schedule, records, the cost model, a strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposals {
    /// The word of the origin.
    pub name: String,
    /// Candidates that came from it.
    pub proposed: u64,
    /// How many of them were measured.
    pub measured: u64,
    /// How many of them were the best of their run so far.
    pub improvements: u64,
    /// The seconds of its fastest.
    pub best: Option<f64>,
    /// Whether the best schedule came from it.
    pub found_best: bool,
}

/// How candidates ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcomes {
    /// The kinds that occurred, with their counts.
    pub kinds: Vec<(&'static str, u64)>,
    /// The commonest reasons.
    pub reasons: Vec<Reason>,
    /// The first crashes, with what the processes said.
    pub crashes: Vec<Crash>,
}

/// Why candidates were not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The kind of outcome.
    pub kind: &'static str,
    /// The reason, with `N` for numbers.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// A process that died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Crash {
    /// The candidate.
    pub trial: TrialId,
    /// The signal or exit code.
    pub reason: String,
    /// What the process wrote to its standard error.
    pub stderr: String,
}

/// Candidates that were measured, thinned; column by column, in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Dots {
    /// How many were measured.
    pub measured: u64,
    /// The number in the run.
    pub trial: Vec<u64>,
    /// The seconds of a call.
    pub seconds: Vec<f64>,
    /// The strategy: a place in [`Section::strategies`].
    pub strategy: Vec<usize>,
}

/// The best schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Winner {
    /// Where it is found.
    pub trial: TrialId,
    /// Where it came from.
    pub origin: String,
    /// The algorithm that it is a schedule of; empty if nobody said.
    pub algorithm: String,
    /// The schedule.
    pub schedule: String,
    /// Its loops, for whoever can lower a schedule to fill in.
    pub loops: Option<String>,
    /// Where it computes the stages, if there are several; likewise.
    pub stages: Option<String>,
}

/// One of the fastest candidates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Where it is found.
    pub trial: TrialId,
    /// The strategy of the run.
    pub strategy: String,
    /// Where it came from.
    pub origin: String,
    /// The algorithm that it is a schedule of; empty if nobody said.
    pub algorithm: String,
    /// The seconds of a call.
    pub seconds: f64,
    /// The distance between the quartiles in units of the median.
    pub spread: f64,
    /// The values of the parameters that differ from those of the fastest; all of them for itself.
    pub values: Vec<(String, String)>,
}

/// A run in a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Its name.
    pub id: RunId,
    /// Its strategy.
    pub strategy: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// How many trials it has: candidates that were built.
    pub trials: u64,
    /// The seconds of its fastest candidate.
    pub best: Option<f64>,
    /// When it began: milliseconds since 1970.
    pub started: i64,
    /// How it ended.
    pub end: Option<RunEnd>,
    /// The command.
    pub command: Option<String>,
}
