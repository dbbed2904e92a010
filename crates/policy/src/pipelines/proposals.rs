//! [`PipelineSchedules`]: what a search over where stages are computed proposes.

use tensorwright_schedule::Schedule;
use tensorwright_space::Rejection;

/// What [`pipeline_schedules`](crate::pipeline_schedules) proposes.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PipelineSchedules {
    /// Schedules, the best by the model first, with the cycles that it expects.
    pub schedules: Vec<(Schedule, f64)>,
    /// Why the states that were tried besides, in their order, mean no schedule.
    pub refused: Vec<Rejection>,
}
