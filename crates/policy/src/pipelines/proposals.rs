//! [`PipelineSchedules`]: the results of one pipeline search.

use tensorwright_schedule::Schedule;
use tensorwright_space::Rejection;

/// The results of [`pipeline_schedules`](crate::pipeline_schedules).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PipelineSchedules {
    /// Schedules with their estimated cycles, best first.
    pub schedules: Vec<(Schedule, f64)>,
    /// Why other states that were tried have no schedule, in order.
    pub refused: Vec<Rejection>,
}
