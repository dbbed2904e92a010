//! What questions about records are answered with.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::error::Error;
use crate::key::{Key, Part};
use crate::model::{Declared, RunEnd, RunInfo, Trial, TrialId};
use crate::program::ProgramInfo;

/// The best that is known for a key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// Where it is found.
    pub id: TrialId,
    /// The candidate.
    pub trial: Trial,
    /// The seconds of a call: as declared, or else as first measured.
    pub seconds: f64,
    /// The declaration; without one this is merely the fastest of all that were measured.
    pub declared: Option<Declared>,
}

/// A best schedule of a similar key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// The key that it holds for.
    pub key: Key,
    /// The program that it was made for.
    pub program: ProgramInfo,
    /// The schedule and its time there.
    pub best: Best,
    /// The parts of the key that differ.
    pub differs: Vec<Part>,
}

impl Near {
    /// Whether it was made for the same program, so that its schedule applies as it is and has to
    /// be checked and timed again; otherwise it is where a search may begin.
    #[must_use]
    pub fn needs_only_verification(&self) -> bool {
        !self.differs.iter().any(|part| matches!(part, Part::Program | Part::Sizes))
    }
}

/// Why nothing was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Miss {
    /// The part of the key that differs; `None` if the key is known and nothing was measured.
    pub part: Option<Part>,
    /// What differs.
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

/// A run with what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// How it was started.
    #[serde(flatten)]
    pub info: RunInfo,
    /// What it tuned.
    pub key: Key,
    /// The name of the definition.
    pub def: String,
    /// The sizes of the definition.
    pub sizes: BTreeMap<String, i64>,
    /// How it ended; `None` if it is running or was killed.
    pub end: Option<RunEnd>,
    /// The trials that are kept.
    pub trials: u64,
}

/// A key with what is known for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeySummary {
    /// The key.
    pub key: Key,
    /// The program.
    pub program: ProgramInfo,
    /// The number of runs.
    pub runs: u64,
    /// The trials that are kept.
    pub trials: u64,
    /// The trials that were counted and removed.
    pub removed: u64,
    /// The best, if anything was measured.
    pub best: Option<Best>,
}

/// Something in the database that cannot be used: it is left out, and somebody ought to know.
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
