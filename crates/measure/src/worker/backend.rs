//! [`Backend`]: what candidates run on, as the runner sees it.

use crate::protocol::{Description, Verdict};

/// What candidates run on: this processor, or a device. It has the memory that candidates use one after the
/// other, what they ought to compute, and a probe of what it can do at this moment.
pub(super) trait Backend {
    /// Code that can be called, with memory to work on.
    type Candidate;

    /// Whether loading compiles, which may take as long as building.
    const COMPILES: bool;

    /// Makes code callable, and makes sure that there is memory for it.
    fn load(&mut self, description: &Description, code: &[u8]) -> Result<Self::Candidate, Verdict>;

    /// Runs what runs once, ahead of all calls.
    fn prepare(&mut self, candidate: &mut Self::Candidate) -> Result<(), Verdict>;

    /// Fills outputs with what is expected nowhere, and the workspace with no numbers: what the candidate before
    /// this one has left must not pass for its own.
    fn poison(&mut self, candidate: &Self::Candidate) -> Result<(), Verdict>;

    /// Calls a candidate so many times: the seconds of a call.
    fn sample(&mut self, candidate: &mut Self::Candidate, batch: u32) -> Result<f64, Verdict>;

    /// Checks that the outputs are right, and that nothing was written behind the end of anything.
    fn confirm(&mut self, candidate: &Self::Candidate) -> Result<(), Verdict>;

    /// The rate that the probe runs at, in the unit of the nearer roof.
    fn rate(&mut self) -> f64;

    /// Fills the caches with something else.
    fn flush(&mut self);
}
