//! The common first steps of the schedules of all states.

use tensorwright_lang::program::TensorId;
use tensorwright_pipeline::{Dag, Decision, Stage, State};
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::primitives::Inline;
use tensorwright_space::Rejection;

use crate::stages::steps::apply;

/// Inlines the stages that a state inlines. Returns the draft and the names of all stages.
///
/// # Errors
/// If a stage cannot be inlined.
pub(crate) fn begin(
    nest: &LoopNest,
    dag: &Dag,
    state: &State,
) -> Result<(ScheduleState, Vec<String>), Rejection> {
    let mut draft = ScheduleState::new(nest.clone());
    let name = |stage: &Stage| nest.buffer(TensorId(stage.tensor)).name.clone();
    let names: Vec<String> = dag.stages.iter().map(name).collect();
    for (stage, name) in names.iter().enumerate() {
        if state.decision(stage) == Some(&Decision::Inline) {
            apply(&mut draft, name, Inline)?;
        }
    }
    Ok((draft, names))
}
