//! The spaces that the candidates of a key belong to.

use tensorwright_records::{RunSummary, Trial};

use crate::downsample::Downsampler;
use crate::meta::Parameter;

/// What tells spaces apart: the hash of a run's, and the algorithm.
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
