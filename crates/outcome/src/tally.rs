//! [`Tally`]: how many candidates ended in which way, and why.

use std::collections::BTreeMap;
use std::fmt;

use crate::Outcome;

/// Reasons that are remembered one by one; the rest is counted only.
const MOST_REASONS: usize = 1000;

/// How many candidates ended in which way, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    counts: [u64; Outcome::KINDS.len()],
    reasons: BTreeMap<(usize, String), u64>,
}

impl Tally {
    /// Counts an outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        let kind = outcome.kind_index();
        self.counts[kind] += 1;
        let Some(reason) = outcome.reason() else { return };
        let key = (kind, generalise(&reason));
        if self.reasons.len() < MOST_REASONS || self.reasons.contains_key(&key) {
            *self.reasons.entry(key).or_default() += 1;
        }
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

    /// The commonest reasons: kind, reason, count.
    #[must_use]
    pub fn commonest(&self, at_most: usize) -> Vec<(&'static str, &str, u64)> {
        let mut all: Vec<_> = self
            .reasons
            .iter()
            .map(|((kind, reason), count)| (Outcome::KINDS[*kind], reason.as_str(), *count))
            .collect();
        all.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        all.truncate(at_most);
        all
    }
}

/// A reason with its numbers left out, so that the same reason about other numbers counts as one.
fn generalise(reason: &str) -> String {
    let line = reason.lines().next().unwrap_or_default();
    let mut text = String::new();
    let mut in_number = false;
    for character in line.chars().take(200) {
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
        assert_eq!(common, [("illegal", "registers: needs N registers", 2)]);
        assert_eq!(tally.count("illegal"), 2);
        assert_eq!(tally.total(), 3);
    }
}
