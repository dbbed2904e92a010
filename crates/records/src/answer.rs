//! Results of queries to records.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::error::Error;
use crate::key::{Key, Part};
use crate::model::{Declared, RunEnd, RunInfo, Trial, TrialId};
use crate::program::ProgramInfo;

/// The best known schedule of a key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// Its trial.
    pub id: TrialId,
    /// The candidate.
    pub trial: Trial,
    /// The seconds of a call: as declared, or else as first measured.
    pub seconds: f64,
    /// The declaration; without one, this is just the fastest measured trial.
    pub declared: Option<Declared>,
}

/// The best schedule of a similar key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// Its key.
    pub key: Key,
    /// Its program.
    pub program: ProgramInfo,
    /// The schedule, and its time under that key.
    pub best: Best,
    /// The parts of the key that differ.
    pub differs: Vec<Part>,
}

impl Near {
    /// Whether it is a schedule of the same program, which applies as it is after checking and
    /// timing it again; otherwise it is a starting point for a search.
    #[must_use]
    pub fn needs_only_verification(&self) -> bool {
        !self.differs.iter().any(|part| matches!(part, Part::Program | Part::Sizes))
    }
}

/// Why nothing was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Miss {
    /// The part of the key that differs; `None` if the key is known but nothing was measured.
    pub part: Option<Part>,
    /// The difference.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Some(part) => write!(f, "{part}: {}", self.message)?,
            None => f.write_str(&self.message)?,
        }
        write!(f, "\n  help: {}", self.help)
    }
}

/// A run with its results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its settings.
    #[serde(flatten)]
    pub info: RunInfo,
    /// Its key.
    pub key: Key,
    /// The name of the definition.
    pub def: String,
    /// The sizes of the definition.
    pub sizes: BTreeMap<String, i64>,
    /// How it ended; `None` if it is running or was killed.
    pub end: Option<RunEnd>,
    /// The number of stored trials.
    pub trials: u64,
}

/// A key with its results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeySummary {
    /// The key.
    pub key: Key,
    /// The program.
    pub program: ProgramInfo,
    /// The number of runs.
    pub runs: u64,
    /// The number of stored trials.
    pub trials: u64,
    /// The trials that were counted and removed.
    pub removed: u64,
    /// The best, if anything was measured.
    pub best: Option<Best>,
}

/// A damaged record, which is skipped with a warning.
#[derive(Debug, Clone, PartialEq)]
pub struct Damage {
    /// The trial.
    pub trial: TrialId,
    /// What is wrong with it.
    pub error: Error,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is left out: {}", self.trial, self.error)
    }
}
