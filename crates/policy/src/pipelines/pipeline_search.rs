//! [`PipelineSearch`]: a program as searches over pipelines see it, for one kind of target.

use std::fmt::Debug;

use tensorwright_pipeline::{BeamOptions, Dag, Levels, Outcome, State};
use tensorwright_schedule::Schedule;
use tensorwright_space::Rejection;

/// A program of several stages as searches over pipelines see it, and what the states that they find mean for a target.
pub trait PipelineSearch: Debug {
    /// The program.
    fn dag(&self) -> &Dag;

    /// The levels of loops of the target.
    fn levels(&self) -> &Levels;

    /// The cycles that the cost model expects of a state.
    fn cycles(&self, state: &State) -> f64;

    /// Searches by the cost model as long as it is told to go on.
    fn search_while(&self, options: &BeamOptions, goes_on: &mut dyn FnMut() -> bool) -> Outcome;

    /// The schedule of a state.
    ///
    /// # Errors
    /// If a step that the state asks for is refused, or the result cannot be lowered.
    fn decode(&self, state: &State) -> Result<Schedule, Rejection>;

    /// Learns from states of this program and the seconds that they took; says whether costs are others now. A model that
    /// is computed learns nothing.
    fn learn(&mut self, _measured: &[(State, f64)], _seed: u64) -> bool {
        false
    }
}
