//! Counts of accepted and rejected items by name.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    counts: BTreeMap<String, Count>,
}

/// Counts of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// How often it was accepted.
    pub(crate) accepted: u64,
    /// How often it was rejected.
    pub(crate) refused: u64,
}

impl Tally {
    /// Counts once.
    pub(crate) fn count(&mut self, name: &str, accepted: bool) {
        let count = self.counts.entry(name.to_owned()).or_default();
        count.accepted += u64::from(accepted);
        count.refused += u64::from(!accepted);
    }

    /// Adds another tally.
    pub(crate) fn add(&mut self, other: &Tally) {
        for (name, count) in &other.counts {
            let sum = self.counts.entry(name.clone()).or_default();
            sum.accepted += count.accepted;
            sum.refused += count.refused;
        }
    }

    /// The required names that were never accepted.
    pub(crate) fn missing<'a>(&self, required: &'a [String]) -> Vec<&'a str> {
        let accepted = |name: &str| self.counts.get(name).is_some_and(|count| count.accepted > 0);
        required.iter().map(String::as_str).filter(|name| !accepted(name)).collect()
    }

    /// How often a name was rejected.
    pub(crate) fn refused(&self, name: &str) -> u64 {
        self.counts.get(name).map_or(0, |count| count.refused)
    }

    /// One line per name, to be read by [`Tally::read_line`].
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let line = |(name, count): (&String, &Count)| {
            format!("{} {} {name}", count.accepted, count.refused)
        };
        self.counts.iter().map(line)
    }

    /// Adds a line of another tally; `None` if it is invalid.
    pub(crate) fn read_line(&mut self, line: &str) -> Option<()> {
        let (accepted, rest) = line.split_once(' ')?;
        let (refused, name) = rest.split_once(' ')?;
        let (accepted, refused) = (accepted.parse().ok()?, refused.parse().ok()?);
        let counts = BTreeMap::from([(name.to_owned(), Count { accepted, refused })]);
        self.add(&Tally { counts });
        Some(())
    }

    /// The counts as a table.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{:<28} {:>10} {:>10}\n", "", "accepted", "refused");
        for (name, Count { accepted, refused }) in &self.counts {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<28} {accepted:>10} {refused:>10}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_carry_a_tally_to_another_process() {
        let mut tally = Tally::default();
        tally.count("split into 2", true);
        tally.count("split into 2", false);
        tally.count("fuse", false);
        let mut read = Tally::default();
        tally.lines().for_each(|line| read.read_line(&line).unwrap());
        assert_eq!(read, tally);
        let required = ["fuse".to_owned(), "split into 2".to_owned()];
        assert_eq!(read.missing(&required), ["fuse"]);
    }
}
