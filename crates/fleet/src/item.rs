//! What is put into the queue.

use std::time::Duration;

use tensorwright_records::{Key, Origin, ProgramInfo, RunInfo};

/// A run whose candidates others try.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What it tunes.
    pub key: Key,
    /// The program: its text is what workers build from.
    pub program: ProgramInfo,
    /// How it was started.
    pub info: RunInfo,
    /// The class of machines that its candidates are for.
    pub class: String,
    /// From 0, which comes first, to 3.
    pub priority: u8,
    /// Its share of the class, beside other runs: from 1 to 100.
    pub weight: u8,
    /// The seed of the inputs that results are checked with.
    pub input_seed: u64,
    /// How long it may take; then what waits is dropped.
    pub time: Duration,
}

impl Run {
    /// A run with the usual priority, weight and time.
    #[must_use]
    pub fn new(key: Key, program: ProgramInfo, info: RunInfo, class: &str) -> Self {
        let input_seed = info.seed;
        let time = Duration::from_secs(86_400);
        Self {
            key,
            program,
            info,
            class: class.to_owned(),
            priority: 1,
            weight: 10,
            input_seed,
            time,
        }
    }
}

/// A candidate of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its number in the run: the same number once more is the same item.
    pub number: u64,
    /// Where it came from.
    pub origin: Origin,
    /// The way to compute the program that its point belongs to; empty if it has no point.
    pub algorithm: String,
    /// The point of that algorithm's space.
    pub point: Vec<u32>,
    /// The schedule.
    pub schedule: String,
}
