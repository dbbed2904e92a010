//! [`Event`]: a write to records, as data.
//!
//! The store applies events, the journal keeps those that could not be applied, and an export is a
//! list of them, one per line. So all three share their code; since events are idempotent, none of
//! them needs to know what the others have done.

use serde::{Deserialize, Serialize};
use tensorwright_outcome::{Outcome, Timing};

use crate::error::{Error, Result};
use crate::key::Key;
use crate::model::{Declared, RunEnd, RunId, RunInfo, Trial, TrialId, now};
use crate::program::ProgramInfo;

/// The longest name, hash, fingerprint or version.
const MAX_NAME: usize = 2000;

/// The longest program, schedule, reason or note.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// The most parameters of a point.
const MAX_POINT: usize = 4096;

/// The most sizes of a program.
const MAX_SIZES: usize = 256;

/// The most threads.
const MAX_THREADS: u32 = 1 << 16;

/// The shortest and the longest time of a call, in seconds: less than a cycle, and months.
const CALL_SECONDS: std::ops::RangeInclusive<f64> = 1e-10..=1e7;

/// The largest difference between clocks of machines, in milliseconds.
const MAX_AHEAD: i64 = 86_400_000;

/// A write to records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Adds a program.
    Program(ProgramInfo),
    /// Adds a run. Its program must be known.
    Run {
        /// Its key.
        key: Key,
        /// Its settings.
        info: RunInfo,
    },
    /// Adds a trial. Its run must be known.
    Trial {
        /// The run.
        run: RunId,
        /// The trial.
        trial: Trial,
    },
    /// Ends a run.
    End {
        /// The run.
        run: RunId,
        /// How.
        end: RunEnd,
    },
    /// Declares a winner. Its trial must be known.
    Best {
        /// Its key.
        key: Key,
        /// The winner.
        best: Declared,
    },
    /// Counts removed trials of a key.
    Removed {
        /// The key.
        key: Key,
        /// The count of each kind of outcome, in the order of [`Outcome::KINDS`].
        counts: Vec<u64>,
    },
}

/// The result of applying an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// It was written.
    Added,
    /// It existed already.
    Known,
    /// It is refused; nothing of it was written.
    Refused(Error),
}

impl Event {
    /// Rejects values that some database could not store and return unchanged.
    pub(crate) fn validate(&self) -> Result<()> {
        match self {
            Self::Program(program) => validate_program(program),
            Self::Run { key, info } => {
                validate_key(key)?;
                validate_run(&info.id)?;
                name("strategy", &info.strategy)?;
                name("space", &info.space)?;
                moment("started", info.started)?;
                text("meta", &info.meta.to_string())
            }
            Self::Trial { run, trial } => {
                validate_run(run)?;
                validate_trial(trial)
            }
            Self::End { run, end } => {
                validate_run(run)?;
                name("status", &end.status)?;
                moment("ended", end.ended)
            }
            Self::Best { key, best } => {
                validate_key(key)?;
                validate_trial_id(&best.trial)?;
                duration("seconds", best.seconds)?;
                moment("declared", best.declared)?;
                text("against", &best.against.to_string())
            }
            Self::Removed { key, counts } => {
                validate_key(key)?;
                if counts.len() != Outcome::KINDS.len() {
                    let kinds = Outcome::KINDS.len();
                    return Err(Error::invalid("counts", format!("has to have {kinds} numbers")));
                }
                counts.iter().try_for_each(|count| whole("count", *count))
            }
        }
    }
}

fn validate_program(program: &ProgramInfo) -> Result<()> {
    name("hash", &program.hash)?;
    name("family", &program.family)?;
    name("def", &program.def)?;
    text("text", &program.text)?;
    if program.sizes.len() > MAX_SIZES {
        return Err(Error::invalid("sizes", format!("are more than {MAX_SIZES}")));
    }
    program.sizes.keys().try_for_each(|size| name("size", size))?;
    amount("flops", program.flops)?;
    amount("bytes", program.bytes)
}

fn validate_key(key: &Key) -> Result<()> {
    name("program", &key.program)?;
    name("family", &key.family)?;
    name("target", &key.target)?;
    name("compiler", &key.compiler)?;
    if key.threads == 0 || key.threads > MAX_THREADS {
        return Err(Error::invalid("threads", format!("has to be 1 to {MAX_THREADS}")));
    }
    Ok(())
}

fn validate_run(run: &RunId) -> Result<()> {
    let id = run.as_str();
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if plain && (1..=64).contains(&id.len()) {
        return Ok(());
    }
    Err(Error::invalid("the name of a run", "has to be 1 to 64 letters, digits and `-`"))
}

fn validate_trial_id(trial: &TrialId) -> Result<()> {
    validate_run(&trial.run)?;
    whole("number", trial.number)
}

fn validate_trial(trial: &Trial) -> Result<()> {
    whole("number", trial.number)?;
    name("origin", trial.origin.as_str())?;
    text("algorithm", &trial.algorithm)?;
    text("schedule", &trial.schedule)?;
    amount("elapsed", trial.elapsed)?;
    if trial.point.len() > MAX_POINT {
        return Err(Error::invalid("point", format!("has more than {MAX_POINT} parameters")));
    }
    match &trial.outcome {
        Outcome::Measured(timing) => validate_timing(timing),
        Outcome::Illegal { rule, reason } => long(rule, reason),
        Outcome::BuildFailed { reason } | Outcome::WrongResult { reason } => long("", reason),
        Outcome::Crashed { reason, stderr } => long(reason, stderr),
        Outcome::TimedOut { limit, .. } => amount("limit", *limit),
        Outcome::DeviceLost => Ok(()),
    }
}

fn validate_timing(timing: &Timing) -> Result<()> {
    duration("seconds", timing.seconds)?;
    amount("raw_seconds", timing.raw_seconds)?;
    amount("spread", timing.spread)?;
    amount("roofline", timing.roofline.unwrap_or_default())
}

/// A name, which is part of an index.
fn name(what: &str, value: &str) -> Result<()> {
    if value.len() > MAX_NAME {
        return Err(Error::invalid(what, format!("is longer than {MAX_NAME} bytes")));
    }
    if value.contains(char::is_control) {
        return Err(Error::invalid(what, "has a control character"));
    }
    text(what, value)
}

/// A text without NUL, at which SQLite and other C code would cut it.
fn text(what: &str, value: &str) -> Result<()> {
    if value.contains('\0') {
        return Err(Error::invalid(what, "has a NUL character"));
    }
    if value.len() > MAX_TEXT {
        return Err(Error::invalid(what, format!("is longer than {MAX_TEXT} bytes")));
    }
    Ok(())
}

/// Output of a process, which may hold any character: it is stored as JSON.
fn long(a: &str, b: &str) -> Result<()> {
    if a.len().saturating_add(b.len()) > MAX_TEXT {
        return Err(Error::invalid("reason", format!("is longer than {MAX_TEXT} bytes")));
    }
    Ok(())
}

fn amount(what: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(what, "is not a finite, non-negative number"))
}

/// Rejects impossible times: a zero or negative one would win forever.
fn duration(what: &str, value: f64) -> Result<()> {
    if CALL_SECONDS.contains(&value) {
        return Ok(());
    }
    let (least, most) = (CALL_SECONDS.start(), CALL_SECONDS.end());
    Err(Error::invalid(what, format!("is not a time from {least:e} to {most:e} seconds")))
}

/// Rejects impossible dates: the last declaration counts, so one from the future would count
/// forever.
fn moment(what: &str, milliseconds: i64) -> Result<()> {
    if (0..=now().saturating_add(MAX_AHEAD)).contains(&milliseconds) {
        return Ok(());
    }
    Err(Error::invalid(what, "is not a date from 1970 to now"))
}

/// Database integers end at 2^63.
fn whole(what: &str, value: u64) -> Result<()> {
    match i64::try_from(value) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::invalid(what, "is too large")),
    }
}
