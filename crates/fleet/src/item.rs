//! Runs and items in the queue.

use std::time::Duration;

use tensorwright_records::{Key, Origin, ProgramInfo, RunInfo};

/// A run whose candidates the fleet tries.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its key.
    pub key: Key,
    /// The program; workers build its text.
    pub program: ProgramInfo,
    /// Its settings.
    pub info: RunInfo,
    /// The class of machines for its candidates.
    pub class: String,
    /// Its priority, from 0 (first) to 3.
    pub priority: u8,
    /// Its weight among runs of the class: from 1 to 100.
    pub weight: u8,
    /// The seed of the inputs for checking results.
    pub input_seed: u64,
    /// The longest life of the run; then its waiting items are dropped.
    pub time: Duration,
}

impl Run {
    /// A run with the default priority, weight and time.
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
    /// Its number in the run: the same number is the same item.
    pub number: u64,
    /// Its origin.
    pub origin: Origin,
    /// The algorithm that its point belongs to; empty without a point.
    pub algorithm: String,
    /// The point of that algorithm's space.
    pub point: Vec<u32>,
    /// The schedule.
    pub schedule: String,
}
