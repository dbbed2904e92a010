//! [`Backend`]: runs candidates on this processor or on a device.

use crate::protocol::{Description, Verdict};

/// Runs candidates on this processor or on a device. It owns the memory that candidates use one
/// after the other, the expected results, and a probe of the current speed.
pub(super) trait Backend {
    /// Code that can be called, with memory to work on.
    type Candidate;

    /// Whether loading compiles, which can take as long as building.
    const COMPILES: bool;

    /// Makes code callable and provides memory for it.
    fn load(&mut self, description: &Description, code: &[u8]) -> Result<Self::Candidate, Verdict>;

    /// Runs the preparation, once before all calls.
    fn prepare(&mut self, candidate: &mut Self::Candidate) -> Result<(), Verdict>;

    /// Overwrites outputs with wrong values and the workspace with NaNs, so that stale results of
    /// an earlier candidate cannot pass.
    fn poison(&mut self, candidate: &Self::Candidate) -> Result<(), Verdict>;

    /// Calls a candidate `batch` times; returns the seconds of a call.
    fn sample(&mut self, candidate: &mut Self::Candidate, batch: u32) -> Result<f64, Verdict>;

    /// Checks the outputs, and that nothing was written out of bounds.
    fn confirm(&mut self, candidate: &Self::Candidate) -> Result<(), Verdict>;

    /// The rate of the probe, in the unit of the nearer roof.
    fn rate(&mut self) -> f64;

    /// Flushes the caches.
    fn flush(&mut self);
}
