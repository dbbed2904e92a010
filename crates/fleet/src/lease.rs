//! Leases and completions of items.

use std::collections::BTreeMap;

use tensorwright_outcome::{Outcome, Timing};

/// The id of a worker that has joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub(crate) i64);

/// The right to complete an item: an unguessable token, revoked when it expires.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease {
    /// The row of the run, for [`Fleet::assignment`](crate::Fleet::assignment).
    pub run: i64,
    /// The number of the item in its run.
    pub number: u64,
    /// The token.
    pub token: String,
}

/// A leased item.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedItem {
    /// Its lease.
    pub lease: Lease,
    /// The number of workers that have started it, including this one.
    pub attempts: u32,
    /// The schedule, or a [`finals_text`](crate::finals_text).
    pub schedule: String,
    /// Whether it is finals: several schedules that are timed in turns.
    pub is_finals: bool,
    /// The best seconds of the run, against which it may be cut short.
    pub best: Option<f64>,
}

/// The data of a run that a worker needs to try its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the run.
    pub run: String,
    /// The class of machines.
    pub class: String,
    /// The seed of the inputs for checking results.
    pub input_seed: u64,
    /// The hash of the program, which its text must have.
    pub program: String,
    /// The name of the definition.
    pub def: String,
    /// The sizes by name.
    pub sizes: BTreeMap<String, i64>,
    /// The text of the program.
    pub text: String,
    /// The fingerprint of the target.
    pub target: String,
    /// The threads that parallel loops use.
    pub threads: u32,
    /// The versions of Tensorwright and of the compiler under it.
    pub compiler: String,
    /// The precision.
    pub precision: String,
}

/// The outcome of a leased item.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Its lease.
    pub lease: Lease,
    /// What became of it.
    pub outcome: Outcome,
}

/// Completions as columns, for the server.
#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) runs: Vec<i64>,
    pub(crate) numbers: Vec<i64>,
    pub(crate) tokens: Vec<String>,
    pub(crate) kinds: Vec<i32>,
    pub(crate) cuts: Vec<bool>,
    pub(crate) seconds: Vec<Option<f64>>,
    pub(crate) raw: Vec<Option<f64>>,
    pub(crate) spreads: Vec<Option<f64>>,
    pub(crate) counts: Vec<Option<i64>>,
    pub(crate) rooflines: Vec<Option<f64>>,
    pub(crate) details: Vec<Option<String>>,
}

impl Columns {
    pub(crate) fn new(completions: &[Completion]) -> Self {
        let mut columns = Self::default();
        for Completion { lease, outcome } in completions {
            let timing: Option<&Timing> = outcome.timing();
            columns.runs.push(lease.run);
            columns.numbers.push(lease.number.cast_signed());
            columns.tokens.push(lease.token.clone());
            columns.kinds.push(outcome.kind_index() as i32);
            columns.cuts.push(timing.is_some_and(|timing| timing.cut));
            columns.seconds.push(timing.map(|timing| timing.seconds));
            columns.raw.push(timing.map(|timing| timing.raw_seconds));
            columns.spreads.push(timing.map(|timing| timing.spread));
            columns.counts.push(timing.map(|timing| timing.runs.into()));
            columns.rooflines.push(timing.and_then(|timing| timing.roofline));
            columns.details.push(timing.is_none().then(|| detail(outcome)));
        }
        columns
    }
}

/// The text of an outcome other than a time, cut to the server's limit.
fn detail(outcome: &Outcome) -> String {
    const MOST: usize = 60_000;
    let text = serde_json::to_string(outcome).unwrap_or_default();
    if text.len() <= MOST {
        return text;
    }
    // JSON encodes a character in at most six.
    let short = |text: &str| text.chars().take(MOST / 24).collect::<String>();
    let cut = match outcome {
        Outcome::Illegal { rule, reason } => {
            Outcome::Illegal { rule: short(rule), reason: short(reason) }
        }
        Outcome::BuildFailed { reason } => Outcome::BuildFailed { reason: short(reason) },
        Outcome::WrongResult { reason } => Outcome::WrongResult { reason: short(reason) },
        Outcome::Crashed { reason, stderr } => {
            Outcome::Crashed { reason: short(reason), stderr: short(stderr) }
        }
        other => other.clone(),
    };
    serde_json::to_string(&cut).unwrap_or_default()
}

/// The outcome of an item, for its run.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemOutcome {
    /// The number of the item.
    pub number: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// The seconds from the start of the run to its outcome.
    pub elapsed: f64,
    /// The name of the worker; `None` if several workers lost it.
    pub worker: Option<String>,
    /// The number of workers that have started it.
    pub attempts: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_outcomes_are_cut_and_stay_what_they_are() {
        let long = "\u{1}x".repeat(1 << 20);
        let outcome = Outcome::Crashed { reason: "SIGSEGV".into(), stderr: long };
        let text = detail(&outcome);
        assert!(text.len() < 65_536, "{}", text.len());
        let Ok(Outcome::Crashed { reason, .. }) = serde_json::from_str(&text) else {
            unreachable!("{text}")
        };
        assert_eq!(reason, "SIGSEGV");
    }
}
