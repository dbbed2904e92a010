//! [`Tally`]: counts of outcomes by kind and reason.

use std::collections::BTreeMap;
use std::fmt;

use crate::Outcome;

/// The most distinct reasons to store; the rest are only counted.
const MOST_REASONS: usize = 1000;

/// Counts of outcomes by kind and reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    counts: [u64; Outcome::KINDS.len()],
    trials: u64,
    /// By kind and reason with numbers removed.
    reasons: BTreeMap<(usize, String), ReasonCount>,
}

/// The count of a reason, and its first text.
#[derive(Debug, Clone, PartialEq)]
struct ReasonCount {
    count: u64,
    words: String,
}

impl Tally {
    /// Counts an outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        let kind = outcome.kind_index();
        self.counts[kind] += 1;
        self.trials += u64::from(outcome.is_trial());
        let Some(reason) = outcome.reason() else { return };
        let key = (kind, generalise(&reason));
        if self.reasons.len() < MOST_REASONS || self.reasons.contains_key(&key) {
            let told = || ReasonCount { count: 0, words: first_words(&reason).collect() };
            self.reasons.entry(key).or_insert_with(told).count += 1;
        }
    }

    /// The number of trials: candidates that were built ([`Outcome::is_trial`]).
    #[must_use]
    pub fn trials(&self) -> u64 {
        self.trials
    }

    /// The number of outcomes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The number of outcomes of a kind; 0 for an unknown name.
    #[must_use]
    pub fn count(&self, kind: &str) -> u64 {
        let place = Outcome::KINDS.iter().position(|name| *name == kind);
        place.map_or(0, |place| self.counts[place])
    }

    /// The kinds that occurred, with their counts.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Outcome::KINDS.into_iter().zip(self.counts).filter(|(_, count)| *count > 0)
    }

    /// The commonest reasons: kind, reason, count. Reasons that differ only in numbers count as
    /// one, with the text of the first.
    #[must_use]
    pub fn commonest(&self, at_most: usize) -> Vec<(&'static str, &str, u64)> {
        let mut all: Vec<_> = self
            .reasons
            .iter()
            .map(|((kind, _), told)| (Outcome::KINDS[*kind], told.words.as_str(), told.count))
            .collect();
        all.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        all.truncate(at_most);
        all
    }
}

/// The first line of a reason, shortened.
fn first_words(reason: &str) -> impl Iterator<Item = char> + '_ {
    reason.lines().next().unwrap_or_default().chars().take(200)
}

/// A reason with its numbers removed, so that reasons with other numbers count as one.
fn generalise(reason: &str) -> String {
    let mut text = String::new();
    let mut in_number = false;
    for character in first_words(reason) {
        let digit = character.is_ascii_digit();
        if digit && !in_number {
            text.push('N');
        } else if !digit {
            text.push(character);
        }
        in_number = digit;
    }
    text
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (kind, count)) in self.kinds().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{count} {kind}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_about_other_numbers_count_as_one() {
        let mut tally = Tally::default();
        for registers in [40, 56] {
            let reason = format!("needs {registers} registers");
            tally.add(&Outcome::Illegal { rule: "registers".into(), reason });
        }
        tally.add(&Outcome::DeviceLost);
        assert_eq!(tally.to_string(), "2 illegal, 1 device-lost");
        let common = tally.commonest(1);
        assert_eq!(common, [("illegal", "registers: needs 40 registers", 2)]);
        assert_eq!(tally.count("illegal"), 2);
        assert_eq!(tally.total(), 3);
    }

    #[test]
    fn reasons_are_told_with_their_numbers() {
        let mut tally = Tally::default();
        tally.add(&Outcome::TimedOut { phase: crate::Phase::Build, limit: 2.5 });
        assert_eq!(tally.commonest(1), [("timed-out", "building took more than 2.5 s", 1)]);
    }

    #[test]
    fn what_was_built_is_a_trial() {
        let mut tally = Tally::default();
        tally.add(&Outcome::Illegal { rule: "unroll".into(), reason: "too much code".into() });
        tally.add(&Outcome::DeviceLost);
        tally.add(&Outcome::BuildFailed { reason: "no".into() });
        tally.add(&Outcome::Measured(crate::Timing::default()));
        assert_eq!((tally.trials(), tally.total()), (2, 4));
    }
}
