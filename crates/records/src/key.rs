//! [`Key`]: identifies program, machine, threads, compiler and precision.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use tensorwright_lang::precision::Precision;
use tensorwright_machine::fingerprint_parts;

use crate::program::ProgramInfo;

/// The lookup key of records: a best schedule holds only for its own key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "KeyText", into = "KeyText")]
pub struct Key {
    /// The hash of the program: structure, sizes and types.
    pub program: String,
    /// The hash of the program without its sizes: the same for all sizes.
    pub family: String,
    /// The [fingerprint](tensorwright_machine::Target::fingerprint) of the target.
    pub target: String,
    /// The threads that parallel loops use.
    pub threads: u32,
    /// The versions of Tensorwright and of the compiler under it.
    pub compiler: String,
    /// The precision.
    pub precision: Precision,
}

/// A key in exports. Older ones append the precision to the compiler's name.
#[derive(Serialize, Deserialize)]
struct KeyText {
    program: String,
    family: String,
    target: String,
    threads: u32,
    compiler: String,
    #[serde(default)]
    precision: Option<String>,
}

impl TryFrom<KeyText> for Key {
    type Error = String;

    fn try_from(text: KeyText) -> Result<Self, String> {
        let KeyText { program, family, target, threads, compiler, precision } = text;
        let (compiler, precision) = match precision {
            Some(precision) => (compiler, precision.parse()?),
            None => precision_of(compiler),
        };
        Ok(Self { program, family, target, threads, compiler, precision })
    }
}

impl From<Key> for KeyText {
    fn from(key: Key) -> Self {
        let Key { program, family, target, threads, compiler, precision } = key;
        let precision = Some(precision.name().to_owned());
        Self { program, family, target, threads, compiler, precision }
    }
}

/// The precision of an older key: before there were precisions, tuning could use any algorithm.
fn precision_of(compiler: String) -> (String, Precision) {
    match compiler.strip_suffix(" exact") {
        Some(compiler) => (compiler.to_owned(), Precision::Exact),
        None => (compiler, Precision::Fast),
    }
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
    /// The precision.
    Precision,
}

impl Key {
    /// The key of a program on a machine, with [`Precision::Exact`].
    #[must_use]
    pub fn new(program: &ProgramInfo, target: &str, threads: u32, compiler: &str) -> Self {
        Self {
            program: program.hash.clone(),
            family: program.family.clone(),
            target: target.to_owned(),
            threads,
            compiler: compiler.to_owned(),
            precision: Precision::Exact,
        }
    }

    /// The same key with another precision.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The parts that differ from another key's, the most important first.
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
            (Part::Precision, self.precision != other.precision),
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
            Self::Precision => "precision",
        })
    }
}

/// Describes how a stored machine differs from this one.
pub(crate) fn machine_difference(wanted: &str, stored: &str) -> String {
    let (wanted_model, wanted) = fingerprint_parts(wanted);
    let (stored_model, stored) = fingerprint_parts(stored);
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

#[cfg(test)]
mod tests {
    use tensorwright_machine::fingerprint;

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
            precision: Precision::Exact,
        };
        assert_eq!(key("a", "f", 1).differences(&key("b", "f", 2)), [Part::Sizes, Part::Threads]);
        assert_eq!(key("a", "f", 1).differences(&key("b", "g", 1)), [Part::Program]);
        assert_eq!(key("a", "f", 1).differences(&key("a", "g", 1)), []);
    }

    #[test]
    fn old_keys_say_their_precision_in_the_name_of_the_compiler() {
        let read = |compiler: &str, more: &str| -> Result<Key, serde_json::Error> {
            serde_json::from_str(&format!(
                r#"{{"program":"p","family":"f","target":"t","threads":1,"compiler":"{compiler}"{more}}}"#
            ))
        };
        let old = read("0.1.0 llvm-19", "").unwrap();
        assert_eq!((old.compiler.as_str(), old.precision), ("0.1.0 llvm-19", Precision::Fast));
        let old = read("0.1.0 llvm-19 exact", "").unwrap();
        assert_eq!((old.compiler.as_str(), old.precision), ("0.1.0 llvm-19", Precision::Exact));
        for precision in Precision::ALL {
            let key = old.clone().with_precision(precision);
            let text = serde_json::to_string(&key).unwrap();
            assert!(text.ends_with(&format!(r#""precision":"{precision}"}}"#)), "{text}");
            assert_eq!(serde_json::from_str::<Key>(&text).unwrap(), key);
        }
        let error = read("c", r#","precision":"some""#).unwrap_err().to_string();
        assert!(error.contains("there is no precision `some`"), "{error}");
    }
}
