//! Problems of pairs, with their text form for pipes.

use std::fmt;

/// The suspected component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Suspect {
    /// The common front: binding, primitives, schedule text, lowering.
    Schedule,
    /// LLVM.
    Llvm,
    /// C.
    C,
    /// LLVM for AArch64, in an emulator.
    Aarch64,
    /// CUDA C++, with threads as fibres.
    Cuda,
    /// OpenCL C, on a device of this machine.
    OpenCl,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The process died.
    Crash,
    /// The process did not end.
    Hang,
    /// A rejection of something accepted before.
    Refused,
    /// Printing and parsing changes the value.
    RoundTrip,
    /// Code generation or compilation fails.
    Compile,
    /// The results are wrong.
    Wrong,
    /// The status is wrong.
    Status,
    /// An out-of-bounds write.
    Memory,
    /// A nest reads unwritten memory, out of bounds, or data that another worker writes.
    Flaw,
}

/// A suspect, what happened, and details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The suspected component.
    pub(crate) suspect: Suspect,
    /// The kind of failure.
    pub(crate) kind: Kind,
    /// Details.
    pub(crate) message: String,
}

const SUSPECTS: [(&str, Suspect); 6] = [
    ("schedule", Suspect::Schedule),
    ("llvm", Suspect::Llvm),
    ("c", Suspect::C),
    ("aarch64", Suspect::Aarch64),
    ("cuda", Suspect::Cuda),
    ("opencl", Suspect::OpenCl),
];

const KINDS: [(&str, Kind); 9] = [
    ("crash", Kind::Crash),
    ("hang", Kind::Hang),
    ("refused", Kind::Refused),
    ("round-trip", Kind::RoundTrip),
    ("compile", Kind::Compile),
    ("wrong", Kind::Wrong),
    ("status", Kind::Status),
    ("memory", Kind::Memory),
    ("flaw", Kind::Flaw),
];

impl Suspect {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        SUSPECTS.iter().find(|(_, suspect)| *suspect == self).map_or("", |(name, _)| name)
    }

    /// The suspect with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        SUSPECTS.into_iter().find(|(known, _)| *known == name).map(|(_, suspect)| suspect)
    }
}

impl Problem {
    /// A problem.
    pub(crate) fn new(suspect: Suspect, kind: Kind, message: impl Into<String>) -> Self {
        Self { suspect, kind, message: message.into() }
    }

    /// Whether two problems may have the same cause: same suspect, same kind.
    pub(crate) fn resembles(&self, other: &Problem) -> bool {
        (self.suspect, self.kind) == (other.suspect, other.kind)
    }

    /// Whether it is a rejection whose reason contains some words.
    pub(crate) fn refuses(&self, words: &str) -> bool {
        self.kind == Kind::Refused && self.message.contains(words)
    }

    /// Whether the compiler of a device crashed in a pass of its own, by its dump: that is a defect
    /// of the compiler, whatever the text.
    pub(crate) fn is_of_compiler(&self) -> bool {
        let dump = ["submit a bug report", "Stack dump:", "Running pass"];
        (self.suspect, self.kind) == (Suspect::OpenCl, Kind::Crash)
            && dump.iter().all(|part| self.message.contains(part))
    }

    /// The problem in one line.
    pub(crate) fn line(&self) -> String {
        let kind = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        format!("{} {kind} {}", self.suspect.name(), in_one_line(&self.message))
    }

    /// The problem of a line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (suspect, rest) = line.split_once(' ')?;
        let (kind, message) = rest.split_once(' ')?;
        let (_, kind) = KINDS.into_iter().find(|(name, _)| *name == kind)?;
        Some(Self { suspect: Suspect::named(suspect)?, kind, message: in_lines(message) })
    }

    /// The common part of messages with one cause. Wrong results have none: each may have its own
    /// cause.
    pub(crate) fn signature(&self) -> Option<String> {
        let tells =
            matches!(self.kind, Kind::Crash | Kind::Refused | Kind::RoundTrip | Kind::Compile);
        let words = self.message.split_whitespace();
        // Names are quoted, or have numbers.
        let plain = words.filter(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
        tells.then(|| plain.fold(self.title(), |text, word| text + " " + word))
    }

    /// Suspect and kind.
    pub(crate) fn title(&self) -> String {
        self.line().split(' ').take(2).collect::<Vec<_>>().join(" ")
    }
}

/// A text in one line; [`in_lines`] reverses it.
pub(crate) fn in_one_line(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

/// The inverse of [`in_one_line`].
pub(crate) fn in_lines(line: &str) -> String {
    let mut text = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next().map(|c| if c == 'n' { '\n' } else { c })),
            c => text.push(c),
        }
    }
    text
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.title(), self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_of_device_compilers_are_told_from_ours() {
        let dump = "SIGSEGV: PLEASE submit a bug report to the vendor\nStack dump:\n\
                    0.\tRunning pass \"vplan-vec\" on function \"kernel_0\"";
        let crash = |suspect, message: &str| Problem::new(suspect, Kind::Crash, message);
        assert!(crash(Suspect::OpenCl, dump).is_of_compiler());
        assert!(!crash(Suspect::Llvm, dump).is_of_compiler());
        assert!(!crash(Suspect::OpenCl, "signal: 11 (SIGSEGV)").is_of_compiler());
        assert!(!Problem::new(Suspect::OpenCl, Kind::Wrong, dump).is_of_compiler());
    }

    #[test]
    fn a_problem_survives_being_a_line() {
        let problem = Problem::new(Suspect::Llvm, Kind::RoundTrip, "a\\n b\nc");
        assert_eq!(Problem::parse(&problem.line()), Some(problem));
        assert_eq!(Problem::parse("nobody wrong x"), None);
    }
}
