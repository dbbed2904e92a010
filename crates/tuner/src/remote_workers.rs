//! [`RemoteWorkers`]: lets the workers of a fleet try the candidates.

/// Lets a fleet try the candidates of a run: workers of all machines of a class lease them from the
/// server of the records. The server stores their outcomes; another process can resume a run whose
/// process is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteWorkers {
    /// The class of machines; by default machines like this one ([`class_of`](crate::class_of)).
    pub class: Option<String>,
    /// The name of a run to resume, even if its process seems alive: that process can then add
    /// nothing. Without a name, a run of the same program, strategy and seed is resumed if it has
    /// not ended and its process is gone.
    pub resume: Option<String>,
    /// The priority, from 0 (first) to 3.
    pub priority: u8,
    /// The weight among runs of the class: from 1 to 100.
    pub weight: u8,
}

impl Default for RemoteWorkers {
    fn default() -> Self {
        Self { class: None, resume: None, priority: 1, weight: 10 }
    }
}

impl RemoteWorkers {
    /// Uses machines of another class.
    #[must_use]
    pub fn class(self, class: Option<String>) -> Self {
        Self { class, ..self }
    }

    /// Resumes the run of this name.
    #[must_use]
    pub fn resume(self, run: Option<String>) -> Self {
        Self { resume: run, ..self }
    }

    /// Sets the priority: from 0 (first) to 3.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// Sets the weight among runs of the class: from 1 to 100.
    #[must_use]
    pub fn weight(self, weight: u8) -> Self {
        Self { weight, ..self }
    }
}
