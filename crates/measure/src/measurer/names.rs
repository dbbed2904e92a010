//! The names that children know, and those of whoever measures.

use tensorwright::{Program, Schedule};
use tensorwright_outcome::Outcome;

/// A program as it is named by whoever measures, and as children get it: with names that mean the same wherever
/// its text is read.
#[derive(Debug)]
pub(super) struct Names {
    own: Program,
    shared: Program,
}

impl Names {
    pub(super) fn of(program: &Program) -> Self {
        Self { own: program.clone(), shared: program.canonically_named() }
    }

    /// What children get.
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

    /// What children say of a candidate.
    pub(super) fn heard(&self, outcome: Outcome) -> Outcome {
        outcome.reworded(|reason| self.shared.ir().translated(reason, self.own.ir()))
    }
}
