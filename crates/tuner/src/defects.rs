//! Candidates that show a defect of the compiler: kept as files that can be replayed.
//!
//! A schedule cannot make a program wrong; a candidate that computes something else, crashes, or that
//! the compiler cannot build is a mistake of ours. The search goes on without it, but it must not be
//! forgotten: what it takes to see it again is written beside the records.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tensorwright::printable;
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_records::Journal;

use crate::names::RecordNames;
use crate::tuner::Tuner;

/// Candidates of a run that show a defect of the compiler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Defects {
    /// How many.
    pub count: u64,
    /// The folder with their files.
    pub folder: PathBuf,
    /// The files that were written; fewer than there are defects if the folder is full.
    pub files: Vec<PathBuf>,
}

impl Defects {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        if other.count > 0 {
            self.folder.clone_from(&other.folder);
        }
        let new = other.files.iter().filter(|file| !self.files.contains(file));
        let new: Vec<PathBuf> = new.cloned().collect();
        self.files.extend(new);
    }

    /// Notes a candidate if its outcome is a defect of the compiler.
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
        // A folder that cannot be written must not end a search; the count says that something is lost.
        if let Ok(Some(file)) = journal.keep_case(&name, &text) {
            self.files.push(file);
        }
    }
}

/// Whether an outcome is a mistake of the compiler and not of the candidate.
fn is_defect(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::WrongResult { .. } | Outcome::Crashed { .. } | Outcome::BuildFailed { .. } => true,
        Outcome::TimedOut { phase, .. } => *phase == Phase::Build,
        Outcome::Measured(_) | Outcome::Illegal { .. } | Outcome::DeviceLost => false,
    }
}

impl Tuner {
    /// A candidate and what became of it, as `xtask differential --replay` takes it: the program with all
    /// sizes as numbers, the inputs, the target and the schedule, in the names of the text. What is kept of a defect of
    /// the compiler.
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
