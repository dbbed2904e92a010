//! [`PipelineSearch`]: the interface of pipeline search for one kind of target.

use std::fmt::Debug;

use tensorwright_pipeline::{BeamOptions, Dag, Levels, Outcome, State};
use tensorwright_schedule::Schedule;
use tensorwright_space::Rejection;

/// A program of several stages, prepared for pipeline search on one kind of target.
pub trait PipelineSearch: Debug {
    /// The graph of the program.
    fn dag(&self) -> &Dag;

    /// The loop levels of the target.
    fn levels(&self) -> &Levels;

    /// The estimated cycles of a state.
    fn cycles(&self, state: &State) -> f64;

    /// Searches with the cost model while `goes_on` returns true.
    fn search_while(&self, options: &BeamOptions, goes_on: &mut dyn FnMut() -> bool) -> Outcome;

    /// The schedule of a state.
    ///
    /// # Errors
    /// If a step of the state is refused, or the result cannot be lowered.
    fn decode(&self, state: &State) -> Result<Schedule, Rejection>;

    /// Trains the cost model on measured states of this program (in seconds); returns whether costs
    /// changed. Analytical models ignore it.
    fn learn(&mut self, _measured: &[(State, f64)], _seed: u64) -> bool {
        false
    }
}
