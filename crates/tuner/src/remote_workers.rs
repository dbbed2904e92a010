//! [`RemoteWorkers`]: that others try the candidates of a run.

/// Candidates of a run are tried by a fleet: by all machines of a class, whose workers lease them from the server of the
/// records. What becomes of them is kept there; a run that its process has left is gone on with by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteWorkers {
    /// The class of machines; by default those that are like this one ([`class_of`](crate::class_of)).
    pub class: Option<String>,
    /// The name of a run to go on with, also if its process seems to live: from then on that may add nothing. Otherwise a
    /// run of the same program, strategy and seed is gone on with if it is not over and its process is gone.
    pub resume: Option<String>,
    /// From 0, which comes first, to 3.
    pub priority: u8,
    /// The share of the class, beside other runs: from 1 to 100.
    pub weight: u8,
}

impl Default for RemoteWorkers {
    fn default() -> Self {
        Self { class: None, resume: None, priority: 1, weight: 10 }
    }
}

impl RemoteWorkers {
    /// On machines of another class.
    #[must_use]
    pub fn class(self, class: Option<String>) -> Self {
        Self { class, ..self }
    }

    /// Going on with a run of this name.
    #[must_use]
    pub fn resume(self, run: Option<String>) -> Self {
        Self { resume: run, ..self }
    }

    /// Before or after other runs: from 0, which comes first, to 3.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// With another share of the class: from 1 to 100.
    #[must_use]
    pub fn weight(self, weight: u8) -> Self {
        Self { weight, ..self }
    }
}
