//! [`Key`]: what a record is found by.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::ProgramInfo;

/// What a record is found by: a best schedule holds for all of it and for nothing else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The hash of the program: structure, sizes and types.
    pub program: String,
    /// The hash of the program without its numbers: the same for all sizes.
    pub family: String,
    /// The [`fingerprint`] of the machine.
    pub target: String,
    /// The threads that parallel loops use.
    pub threads: u32,
    /// The versions of Tensorwright and of the compiler under it.
    pub compiler: String,
}

/// A part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The computation.
    Program,
    /// The sizes of the computation.
    Sizes,
    /// The machine.
    Target,
    /// The number of threads.
    Threads,
    /// The compiler.
    Compiler,
}

impl Key {
    /// The key of a program on a machine.
    #[must_use]
    pub fn new(program: &ProgramInfo, target: &str, threads: u32, compiler: &str) -> Self {
        Self {
            program: program.hash.clone(),
            family: program.family.clone(),
            target: target.to_owned(),
            threads,
            compiler: compiler.to_owned(),
        }
    }

    /// The parts that differ from another key's, the weightiest first.
    #[must_use]
    pub fn differences(&self, other: &Key) -> Vec<Part> {
        let same_program = self.program == other.program;
        let same_family = self.family == other.family;
        let parts = [
            (Part::Program, !same_program && !same_family),
            (Part::Sizes, !same_program && same_family),
            (Part::Target, self.target != other.target),
            (Part::Threads, self.threads != other.threads),
            (Part::Compiler, self.compiler != other.compiler),
        ];
        parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "program",
            Self::Sizes => "sizes",
            Self::Target => "machine",
            Self::Threads => "threads",
            Self::Compiler => "compiler",
        })
    }
}

/// The text that stands for a machine: its model and its features in alphabetical order.
///
/// ```
/// let target = tensorwright_records::fingerprint("A Processor", ["fma", "avx2"]);
/// assert_eq!(target, "A Processor [avx2 fma]");
/// ```
#[must_use]
pub fn fingerprint<'f>(model: &str, features: impl IntoIterator<Item = &'f str>) -> String {
    let features: BTreeSet<&str> = features.into_iter().filter(|name| !name.is_empty()).collect();
    let features: Vec<&str> = features.into_iter().collect();
    format!("{} [{}]", model.trim(), features.join(" "))
}

/// The features that a [`fingerprint`] lists.
#[must_use]
pub fn fingerprint_features(target: &str) -> BTreeSet<&str> {
    parts(target).1
}

/// How a stored machine differs from the wanted one, in words.
pub(crate) fn machine_difference(wanted: &str, stored: &str) -> String {
    let (wanted_model, wanted) = parts(wanted);
    let (stored_model, stored) = parts(stored);
    let mut words = Vec::new();
    if wanted_model != stored_model {
        words.push(format!("measured on `{stored_model}`, this is `{wanted_model}`"));
    }
    let list = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| {
        a.difference(b).copied().collect::<Vec<&str>>().join(" ")
    };
    let (lost, gained) = (list(&stored, &wanted), list(&wanted, &stored));
    if !lost.is_empty() {
        words.push(format!("it had {lost}, which is missing here"));
    }
    if !gained.is_empty() {
        words.push(format!("it had no {gained}, which is here"));
    }
    words.join("; ")
}

/// The model and the features of a fingerprint.
fn parts(target: &str) -> (&str, BTreeSet<&str>) {
    let whole = (target, BTreeSet::new());
    let Some((model, features)) = target.strip_suffix(']').and_then(|text| text.rsplit_once(" ["))
    else {
        return whole;
    };
    (model, features.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_differ_in_model_and_features() {
        let a = fingerprint("Old", ["avx2", "fma"]);
        let b = fingerprint("New", ["avx2", "fma", "avx512f"]);
        let words = "measured on `Old`, this is `New`; it had no avx512f, which is here";
        assert_eq!(machine_difference(&b, &a), words);
        let words = "it had fma, which is missing here";
        assert_eq!(machine_difference("X [avx2]", "X [avx2 fma]"), words);
    }

    #[test]
    fn sizes_differ_within_a_family_and_programs_beyond_it() {
        let key = |program: &str, family: &str, threads| Key {
            program: program.into(),
            family: family.into(),
            target: "t".into(),
            threads,
            compiler: "c".into(),
        };
        assert_eq!(key("a", "f", 1).differences(&key("b", "f", 2)), [Part::Sizes, Part::Threads]);
        assert_eq!(key("a", "f", 1).differences(&key("b", "g", 1)), [Part::Program]);
        assert_eq!(key("a", "f", 1).differences(&key("a", "g", 1)), []);
    }
}
