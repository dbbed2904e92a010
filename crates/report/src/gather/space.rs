//! The search spaces of a key's candidates.

use tensorwright_records::{RunSummary, Trial};

use crate::downsample::Downsampler;
use crate::meta::Parameter;

/// The identity of a space: the hash of its run's spaces, and the algorithm.
pub(super) type SpaceName = (String, String);

/// The space of a trial.
pub(super) fn space_of(run: &RunSummary, trial: &Trial) -> SpaceName {
    (run.info.space.clone(), trial.algorithm.clone())
}

/// The candidates of a space.
#[derive(Debug, Clone)]
pub(super) struct Space {
    pub(super) parameters: Vec<Parameter>,
    pub(super) points: Downsampler<(Vec<u32>, f64)>,
}
