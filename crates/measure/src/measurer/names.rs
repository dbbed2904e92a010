//! Translates names between callers and children.

use tensorwright::{Program, Schedule};
use tensorwright_outcome::Outcome;

/// A program with the caller's names, and with names by position for children.
#[derive(Debug)]
pub(super) struct Names {
    own: Program,
    shared: Program,
}

impl Names {
    pub(super) fn of(program: &Program) -> Self {
        Self { own: program.clone(), shared: program.canonically_named() }
    }

    /// The program for children.
    pub(super) fn shared(&self) -> &Program {
        &self.shared
    }

    /// The text of a schedule for children.
    pub(super) fn told(&self, schedule: &Schedule) -> Result<String, Outcome> {
        let renamed = schedule.renamed(self.own.ir(), self.shared.ir());
        renamed.map(|schedule| schedule.to_string()).map_err(|error| Outcome::Illegal {
            rule: error.keyword().unwrap_or("syntax").to_owned(),
            reason: error.reason().to_owned(),
        })
    }

    /// A child's outcome in the caller's names.
    pub(super) fn heard(&self, outcome: Outcome) -> Outcome {
        outcome.reworded(|reason| self.shared.ir().translated(reason, self.own.ir()))
    }
}
