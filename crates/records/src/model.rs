//! Runs, trials, declarations and verifications.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tensorwright_outcome::Outcome;

use crate::key::Key;
use crate::origin::Origin;

/// The globally unique name of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A new unique name: 128 bits from the system's randomness and the clock.
    #[must_use]
    pub fn fresh() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Each `RandomState` gets its keys from the system.
        let half = || {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u128(since.as_nanos());
            hasher.write_u32(std::process::id());
            hasher.finish()
        };
        Self(format!("{:016x}{:016x}", half(), half()))
    }

    /// A name as written in commands and files.
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

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its name.
    pub id: RunId,
    /// The strategy that proposed the candidates.
    pub strategy: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// The hash of the space of its points.
    pub space: String,
    /// The command, its options, and other metadata.
    pub meta: serde_json::Value,
    /// The start time: milliseconds since 1970.
    pub started: i64,
}

impl RunInfo {
    /// A run that starts now.
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

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When: milliseconds since 1970.
    pub ended: i64,
    /// The status: `finished`, `interrupted`, `exhausted`.
    pub status: String,
}

/// A candidate and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number in the run.
    pub number: u64,
    /// Its origin.
    #[serde(default)]
    pub origin: Origin,
    /// The algorithm that its point belongs to; empty without a point.
    #[serde(default)]
    pub algorithm: String,
    /// The point in that algorithm's space; empty for a schedule outside every space.
    pub point: Vec<u32>,
    /// The schedule.
    pub schedule: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// The seconds from the start of the run to its outcome.
    pub elapsed: f64,
}

impl Trial {
    /// A candidate without a result: the device was lost before it was tried.
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

/// The identifier of a trial.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrialId {
    /// The run.
    pub run: RunId,
    /// The number in the run.
    pub number: u64,
}

impl TrialId {
    /// Encodes the identifier as one word.
    pub(crate) fn to_word(&self) -> String {
        format!("{}/{}", self.run, self.number)
    }

    /// Decodes a word of [`TrialId::to_word`].
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

/// The declared winner among finalists that were measured again in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// Its trial.
    pub trial: TrialId,
    /// The seconds of a call, when measured in turns with the others.
    pub seconds: f64,
    /// Its competitors: the finalists and the default schedule, with their times.
    pub against: serde_json::Value,
    /// When: milliseconds since 1970.
    pub declared: i64,
    /// The best that it replaces, which was measured with it; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<TrialId>,
}

/// A verification by an installation that a schedule computes what the program says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The program, the machine, the threads and the compiler.
    pub key: Key,
    /// The text of the schedule.
    pub schedule: String,
    /// The installation: unique to a machine and a build of the compiler.
    pub installation: String,
}

/// The current time: milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
