//! Keeps candidates that show a compiler defect as replayable files.
//!
//! A legal schedule never changes what a program computes: a candidate that computes something
//! else, crashes, or does not build shows a compiler bug. The search continues without it; a file
//! beside the records keeps what is needed to reproduce it.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tensorwright::printable;
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_records::Journal;

use crate::names::RecordNames;
use crate::tuner::Tuner;

/// The compiler defects that a run has met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Defects {
    /// How many.
    pub count: u64,
    /// The folder with their files.
    pub folder: PathBuf,
    /// The files written; fewer than `count` if the folder is full.
    pub files: Vec<PathBuf>,
}

impl Defects {
    /// Adds the defects of another run.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        if other.count > 0 {
            self.folder.clone_from(&other.folder);
        }
        let new = other.files.iter().filter(|file| !self.files.contains(file));
        let new: Vec<PathBuf> = new.cloned().collect();
        self.files.extend(new);
    }

    /// Stores a candidate if its outcome is a compiler defect.
    pub(crate) fn note(
        &mut self,
        tuner: &Tuner,
        journal: &Journal,
        schedule: &str,
        outcome: &Outcome,
    ) {
        if !is_defect(outcome) {
            return;
        }
        self.count += 1;
        self.folder = journal.case_folder();
        let text = tuner.case(schedule, outcome);
        let hash = Sha256::digest(&text);
        let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{}-{hash}.case", outcome.kind());
        // An unwritable folder must not end a search; the count shows that a file is missing.
        if let Ok(Some(file)) = journal.keep_case(&name, &text) {
            self.files.push(file);
        }
    }
}

/// Whether an outcome is the compiler's fault.
fn is_defect(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::WrongResult { .. } | Outcome::Crashed { .. } | Outcome::BuildFailed { .. } => true,
        Outcome::TimedOut { phase, .. } => *phase == Phase::Build,
        Outcome::Measured(_) | Outcome::Illegal { .. } | Outcome::DeviceLost => false,
    }
}

impl Tuner {
    /// A candidate and its outcome in the format of `xtask differential --replay`: the program with
    /// all sizes as numbers, the inputs, the target and the schedule, in the names of the source
    /// text.
    #[must_use]
    pub fn case(&self, schedule: &str, outcome: &Outcome) -> String {
        let program = self.shown.as_printed();
        let names = RecordNames::new(&program, || None);
        let renamed = names.own(schedule).map(|schedule| schedule.to_string());
        let schedule = renamed.unwrap_or_else(|| schedule.to_owned());
        let reason = outcome.reason().unwrap_or_default();
        let reason = printable(&reason).replace(['\n', '\t'], " ");
        let reason: String = reason.chars().take(500).collect();
        format!(
            "def {}\nsizes\ninputs {} tuned\ntarget {}\nthreads {}\noutcome {}: {reason}\n\
             --- program\n{}--- schedule\n{schedule}",
            self.program.name(),
            self.seed,
            self.goal.target.name(),
            self.goal.threads(),
            outcome.kind(),
            program
        )
    }
}
