//! What is handed out, and what comes back.

use std::collections::BTreeMap;

use tensorwright_outcome::{Outcome, Timing};

/// The number of a worker that has joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub(crate) i64);

/// The right to complete an item: nobody can guess it, and it is taken away when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease {
    /// The row of the run, for [`Fleet::assignment`](crate::Fleet::assignment).
    pub run: i64,
    /// The number of the item in its run.
    pub number: u64,
    /// The token.
    pub token: String,
}

/// An item that was leased.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedItem {
    /// The right to complete it.
    pub lease: Lease,
    /// How many workers have begun with it, this one counted.
    pub attempts: u32,
    /// The schedule; of finals, a [`finals_text`](crate::finals_text).
    pub schedule: String,
    /// Whether it is finals: several schedules that are timed in turns.
    pub is_finals: bool,
    /// The best seconds of the run, beside which it may be cut short.
    pub best: Option<f64>,
}

/// What is to be known of a run before its items can be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the run.
    pub run: String,
    /// The class of machines.
    pub class: String,
    /// The seed of the inputs that results are checked with.
    pub input_seed: u64,
    /// The hash of the program, which its text has to have.
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
    /// With which numbers sums may be computed.
    pub precision: String,
}

/// What became of an item, for whoever holds its lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The right to complete it.
    pub lease: Lease,
    /// What became of it.
    pub outcome: Outcome,
}

/// Completions column by column, as the server takes them.
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

/// The text of an outcome that is not a time, cut where it is longer than the server takes.
fn detail(outcome: &Outcome) -> String {
    const MOST: usize = 60_000;
    let text = serde_json::to_string(outcome).unwrap_or_default();
    if text.len() <= MOST {
        return text;
    }
    // JSON writes a character as six at most.
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

/// What became of an item, for its run.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemOutcome {
    /// The number of the item.
    pub number: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// When it was known: seconds since the run began.
    pub elapsed: f64,
    /// The name of the worker; `None` if several lost it.
    pub worker: Option<String>,
    /// How many workers have begun with it.
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
