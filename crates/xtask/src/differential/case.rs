//! Test cases as text: a program with a schedule and inputs.
//!
//! Failures are written, minimised and replayed in this format.
//!
//! ```text
//! def kernel
//! sizes N1=7 N2=5
//! inputs 17 plain
//! target avx2
//! --- program
//! def kernel(float(N1,N2) A) -> (T) { T(i) +=! A(i,j) }
//! --- schedule
//! T: split j 4
//! ```
//!
//! The tuner writes the same format for compiler defects, with additional lines `threads` and
//! `outcome`. Their schedules come from search spaces, so they must apply and lower.
//!
//! A comment `# refused: words` in the schedule means that the schedule must be rejected, for a
//! reason that contains these words.

use std::fmt;

use tensorwright_lang::Module;
use tensorwright_lang::program::Program;

use super::inputs::Inputs;

const PROGRAM: &str = "--- program\n";
/// The line before the schedule.
pub(crate) const SCHEDULE: &str = "--- schedule\n";

/// A program with a schedule and inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    /// The source text.
    pub(crate) text: String,
    /// The definition to bind.
    pub(crate) def: String,
    /// Its sizes.
    pub(crate) sizes: Vec<(String, i64)>,
    /// Its inputs.
    pub(crate) inputs: Inputs,
    /// The processor that LLVM generates code for.
    pub(crate) target: String,
    /// The text of the schedule.
    pub(crate) schedule: String,
}

impl Case {
    /// Reads the text that `Display` writes.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (header, rest) = text.split_once(PROGRAM).ok_or("a case has a line `--- program`")?;
        let (program, schedule) =
            rest.split_once(SCHEDULE).ok_or("a case has a line `--- schedule`")?;
        let field = |name: &str| {
            let line = header.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).ok_or_else(|| format!("a case has a line `{name} ...`"))
        };
        let size = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let sizes = field("sizes")?.split_whitespace().map(size).collect::<Option<_>>();
        Ok(Self {
            text: program.to_owned(),
            def: field("def")?.to_owned(),
            sizes: sizes.ok_or("sizes are `NAME=NUMBER`")?,
            inputs: Inputs::parse(field("inputs")?).ok_or("inputs are a seed and a kind")?,
            target: field("target")?.to_owned(),
            schedule: schedule.to_owned(),
        })
    }

    /// Whether a text was written by the tuner.
    pub(crate) fn is_of_tuning(text: &str) -> bool {
        let header = text.split_once(PROGRAM).map_or("", |(header, _)| header);
        header.lines().any(|line| line.starts_with("outcome "))
    }

    /// Words of the expected rejection, if any.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.schedule.lines().find_map(|line| line.strip_prefix("# refused:")).map(str::trim)
    }

    /// The program, bound.
    pub(crate) fn bind(&self) -> Result<Program, String> {
        Module::parse("case.tc", &self.text)
            .and_then(|module| module.def(&self.def)?.bind(self.sizes.clone()))
            .map_err(|diagnostics| diagnostics.to_string())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let Self { text, def, inputs, target, schedule, .. } = self;
        writeln!(f, "def {def}\nsizes {}\ninputs {inputs}\ntarget {target}", sizes.join(" "))?;
        write!(f, "{PROGRAM}{text}")?;
        if !text.ends_with('\n') {
            writeln!(f)?;
        }
        write!(f, "{SCHEDULE}{schedule}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_reads_as_it_is_written() {
        let case = Case {
            text: "def f(float(N) A) -> (T) { T(i) = A(i) }\n".to_owned(),
            def: "f".to_owned(),
            sizes: vec![("N".to_owned(), 7)],
            inputs: Inputs::parse("3 wide").unwrap(),
            target: "native".to_owned(),
            schedule: "T: split i 4\n".to_owned(),
        };
        assert_eq!(Case::parse(&case.to_string()).unwrap(), case);
        assert!(case.bind().is_ok());
        assert_eq!(case.refused(), None);
        let schedule = "# refused: is a reduction\nT: inline\n".to_owned();
        assert_eq!(Case { schedule, ..case }.refused(), Some("is a reduction"));
        assert!(Case::parse("def f").is_err());
    }

    #[test]
    fn a_case_that_tuning_kept_is_read() {
        let text = "def f\nsizes\ninputs 0 plain\ntarget native\nthreads 1\noutcome crashed: SIGSEGV\n\
                    --- program\ndef f(float(7) A) -> (T) {\n  T(i) = A(i) where i in 0:7\n}\n\
                    --- schedule\nT: split i 4\n";
        let case = Case::parse(text).unwrap();
        assert_eq!((case.def.as_str(), case.sizes.len()), ("f", 0));
        assert!(case.bind().is_ok());
        assert_eq!(case.schedule, "T: split i 4\n");
        assert!(Case::is_of_tuning(text) && !Case::is_of_tuning(&case.to_string()));
    }
}
