//! [`Report`]: the contents of a page.

use serde::Serialize;
use tensorwright_records::{Key, ProgramInfo, RunEnd, RunId, TrialId};

use crate::curve::{Curve, Median};
use crate::importance::Importance;

/// Selects the records of a report; by default all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only the program with this hash: on every machine, with any number of threads.
    pub program: Option<String>,
    /// Only runs whose name starts with this.
    pub run: Option<String>,
}

/// The contents of a page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The creation time: milliseconds since 1970; filled in by the caller.
    pub made: Option<i64>,
    /// One section per key.
    pub sections: Vec<Section>,
    /// The number of keys left out.
    pub left_out: usize,
}

/// The results of a key.
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
    /// The machine's peaks.
    pub roofs: Option<Roofs>,
    /// The runs by strategy, the best first.
    pub strategies: Vec<Strategy>,
    /// The origins of the candidates, the most successful first.
    pub origins: Vec<Proposals>,
    /// The outcomes of candidates.
    pub outcomes: Outcomes,
    /// Measured candidates, downsampled.
    pub dots: Dots,
    /// The importance of the parameters.
    pub importance: Option<Importance>,
    /// The best schedule.
    pub winner: Option<Winner>,
    /// The fastest candidates.
    pub fastest: Vec<Candidate>,
    /// The runs, the latest first.
    pub runs: Vec<Line>,
    /// The number of runs left out.
    pub runs_left_out: usize,
}

/// The result in a few numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Headline {
    /// The seconds of a call with the best schedule.
    pub seconds: Option<f64>,
    /// Whether the best is from finals.
    pub declared: bool,
    /// Its speed, if the program does arithmetic.
    pub gflops: Option<f64>,
    /// The share of the machine's roofline.
    pub roofline: Option<f64>,
    /// The seconds of a call with the default schedule.
    pub default_seconds: Option<f64>,
    /// How much faster the best is than the default schedule.
    pub speedup: Option<f64>,
    /// The number of trials read: candidates that were built, as `tune` counts them.
    pub trials: u64,
    /// The number of candidates refused by rules before anything was built.
    pub refused: u64,
    /// The number of trials of the key that were counted and removed.
    pub removed: u64,
    /// When the first run began: milliseconds since 1970.
    pub first: Option<i64>,
    /// When the last run began: milliseconds since 1970.
    pub last: Option<i64>,
}

/// The machine's peaks for this program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Roofs {
    /// Arithmetic in 10^9 operations per second.
    pub peak_gflops: f64,
    /// Memory bandwidth in 10^9 bytes per second.
    pub peak_gbps: f64,
    /// Arithmetic intensity: operations per byte that must be moved.
    pub intensity: f64,
}

impl Roofs {
    /// The speed at the memory roof.
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
    /// The median of the runs' best seconds.
    pub median_best: Option<f64>,
    /// The best seconds of all runs.
    pub best: Option<f64>,
    /// The number of runs that reached 95 % of the speed of the best candidate of this report.
    pub reached: usize,
    /// The median trial at which they did.
    pub trials_to_reach: Option<f64>,
    /// The median seconds after which they did.
    pub seconds_to_reach: Option<f64>,
    /// The best-so-far curves of the runs; some are left out if there are many.
    pub curves: Vec<Curve>,
    /// The median of all runs, if there are several.
    pub median: Option<Median>,
}

/// The candidates of one origin: the default schedule, records, the cost model, a strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposals {
    /// The word of the origin.
    pub name: String,
    /// The number of its candidates.
    pub proposed: u64,
    /// The number of measured ones.
    pub measured: u64,
    /// The number of them that improved the best of their run.
    pub improvements: u64,
    /// The seconds of its fastest.
    pub best: Option<f64>,
    /// Whether it found the best schedule.
    pub found_best: bool,
}

/// The outcomes of candidates.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcomes {
    /// The kinds that occurred, with their counts.
    pub kinds: Vec<(&'static str, u64)>,
    /// The commonest reasons.
    pub reasons: Vec<Reason>,
    /// The first crashes, with their output.
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

/// Measured candidates, downsampled; column by column, ordered by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Dots {
    /// The number of measured candidates.
    pub measured: u64,
    /// The number in the run.
    pub trial: Vec<u64>,
    /// The seconds of a call.
    pub seconds: Vec<f64>,
    /// The strategy: an index in [`Section::strategies`].
    pub strategy: Vec<usize>,
}

/// The best schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Winner {
    /// Its trial.
    pub trial: TrialId,
    /// Its origin.
    pub origin: String,
    /// Its algorithm; empty if unknown.
    pub algorithm: String,
    /// The schedule.
    pub schedule: String,
    /// Its loop nest; filled in by a caller that can lower schedules.
    pub loops: Option<String>,
    /// Where stages are computed, if there are several; also filled in by the caller.
    pub stages: Option<String>,
}

/// One of the fastest candidates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Its trial.
    pub trial: TrialId,
    /// The strategy of the run.
    pub strategy: String,
    /// Its origin.
    pub origin: String,
    /// Its algorithm; empty if unknown.
    pub algorithm: String,
    /// The seconds of a call.
    pub seconds: f64,
    /// The interquartile range relative to the median.
    pub spread: f64,
    /// The parameter values that differ from those of the fastest; all of them for the fastest
    /// itself.
    pub values: Vec<(String, String)>,
}

/// A row in the table of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Its name.
    pub id: RunId,
    /// Its strategy.
    pub strategy: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// The number of its trials: candidates that were built.
    pub trials: u64,
    /// The seconds of its fastest candidate.
    pub best: Option<f64>,
    /// Its start: milliseconds since 1970.
    pub started: i64,
    /// Its end.
    pub end: Option<RunEnd>,
    /// The command.
    pub command: Option<String>,
}
