//! What records are made of: runs, trials, declarations and verifications.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tensorwright_outcome::Outcome;

use crate::key::Key;
use crate::origin::Origin;

/// The name of a run, unlike any other on any machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A name that no other run has: 128 bits from the system's randomness and the clock.
    #[must_use]
    pub fn fresh() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Each `RandomState` has keys of its own that come from the system.
        let half = || {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u128(since.as_nanos());
            hasher.write_u32(std::process::id());
            hasher.finish()
        };
        Self(format!("{:016x}{:016x}", half(), half()))
    }

    /// A name as it is written in commands and files.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a run was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its name.
    pub id: RunId,
    /// The strategy that proposed the candidates.
    pub strategy: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// The hash of the space that points belong to.
    pub space: String,
    /// The command, its options, and whatever else is worth keeping.
    pub meta: serde_json::Value,
    /// When it began: milliseconds since 1970.
    pub started: i64,
}

impl RunInfo {
    /// A run that begins now.
    #[must_use]
    pub fn new(strategy: &str, seed: u64) -> Self {
        Self {
            id: RunId::fresh(),
            strategy: strategy.to_owned(),
            seed,
            space: String::new(),
            meta: serde_json::Value::Null,
            started: now(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When: milliseconds since 1970.
    pub ended: i64,
    /// In a word: `finished`, `interrupted`, `exhausted`.
    pub status: String,
}

/// A candidate and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number in the run.
    pub number: u64,
    /// Where it came from.
    #[serde(default)]
    pub origin: Origin,
    /// The way to compute the program that its point belongs to; empty if it has no point.
    #[serde(default)]
    pub algorithm: String,
    /// The point of that algorithm's space; empty for a schedule that no space has.
    pub point: Vec<u32>,
    /// The schedule that the point stands for.
    pub schedule: String,
    /// What became of it.
    pub outcome: Outcome,
    /// When it was known: seconds since the run began.
    pub elapsed: f64,
}

impl Trial {
    /// A candidate of which nothing is known: the device was lost before it could be tried.
    #[must_use]
    pub fn new(number: u64, point: Vec<u32>, schedule: &str) -> Self {
        Self {
            number,
            origin: Origin::Unknown,
            algorithm: String::new(),
            point,
            schedule: schedule.to_owned(),
            outcome: Outcome::DeviceLost,
            elapsed: 0.0,
        }
    }
}

/// Where a trial is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrialId {
    /// The run.
    pub run: RunId,
    /// The number in the run.
    pub number: u64,
}

impl TrialId {
    /// The name of the run and the number, as one word of a row.
    pub(crate) fn to_word(&self) -> String {
        format!("{}/{}", self.run, self.number)
    }

    /// What [`TrialId::to_word`] wrote.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let (run, number) = word.rsplit_once('/')?;
        Some(Self { run: RunId::named(run), number: number.parse().ok()? })
    }
}

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trial {} of run {}", self.number, self.run)
    }
}

/// The winner among finalists that were measured again, in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// Which trial.
    pub trial: TrialId,
    /// The seconds of a call, when measured in turns with the others.
    pub seconds: f64,
    /// What it was measured against: the finalists and the default schedule, with their times.
    pub against: serde_json::Value,
    /// When: milliseconds since 1970.
    pub declared: i64,
    /// The best that it takes the place of, which was measured beside it; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<TrialId>,
}

/// What is verified: that a schedule computes what a program says, by an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The program, the machine, the threads and the compiler.
    pub key: Key,
    /// The text of the schedule.
    pub schedule: String,
    /// Who verifies: a text that no other machine and no other build of the compiler has.
    pub installation: String,
}

/// The time: milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
