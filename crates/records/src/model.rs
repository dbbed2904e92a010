//! What records are made of, and what questions about them are answered with.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tensorwright_outcome::{Outcome, Tally};

use crate::key::{Key, Part};
use crate::origin::Origin;

/// A program that was tuned.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// The hash of structure, sizes and types.
    pub hash: String,
    /// The hash of the structure and types alone.
    pub family: String,
    /// The name of the definition.
    pub def: String,
    /// The sizes by name.
    pub sizes: BTreeMap<String, i64>,
    /// Source text with all sizes as numbers, which binds to a program of the same hash.
    pub text: String,
    /// The operations of a call.
    pub flops: f64,
    /// The bytes that a call has to read and write at least.
    pub bytes: f64,
}

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

/// Something in the database that cannot be used: it is left out, and somebody ought to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Damage {
    /// The trial.
    pub trial: TrialId,
    /// What is wrong with it.
    pub error: crate::Error,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is left out: {}", self.trial, self.error)
    }
}

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

/// The time: milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A tally in words, or that there is nothing to tally.
pub(crate) fn tally_words(tally: &Tally) -> String {
    if tally.total() == 0 { "no trials".to_owned() } else { tally.to_string() }
}
