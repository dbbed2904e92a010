//! Schedules of pipelines: a state of the search of `tensorwright-pipeline` as steps on the canonical nest.
//!
//! ```text
//! out: root 32x256 > 4x256 > 1x64       out: split y 8 4 -> y.parallel y.cache y.in
//! bx: at out parallel ...          ->   out: split x 256 -> x.parallel x.in
//!                                       bx: compute_at out x.parallel
//! ```
//!
//! A state is decoded as it says or refused with the reason. Stages whose loops a state leaves open (products, scans,
//! scatters) are finished by rules.

mod decode;
mod hosts;

use tensorwright_lang::program::Program;
use tensorwright_pipeline::{Analytical, Dag, Levels, Machine, Options, State, Statistics, search};
use tensorwright_schedule::{Schedule, lower};
use tensorwright_space::Rejection;
use tensorwright_target::{Cpu, Goal};

/// States that are tried for each schedule that is wanted: some can be neither applied nor lowered.
const TRIES: usize = 16;

/// The states that a search found for a program, and what they mean.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_pipeline::Options;
/// use tensorwright_policy::cpu::Pipeline;
/// use tensorwright_target::{Cpu, Goal};
///
/// let text = "def blur(float(H,W) in) -> (out) {
///   bx(y,x) = in(y,x) + in(y,x+1)
///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
/// }";
/// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 2000), ("W", 2000)])?;
/// let goal = Goal::new(Cpu::avx512());
/// let found = Pipeline::search(&program, &goal, &Options::greedy());
/// let (best, cycles) = &found.states[0];
/// println!("{}{cycles} cycles", best.text(&found.dag, &found.levels));
/// let schedule = found.decode(best).map_err(|refused| refused.reason)?;
/// assert!(schedule.to_string().contains("vectorize"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Pipeline<'a> {
    program: &'a Program,
    goal: &'a Goal<Cpu>,
    /// The program as the search saw it.
    pub dag: Dag,
    /// The levels of loops of the target.
    pub levels: Levels,
    /// What was found, the best by the model first.
    pub states: Vec<(State, f64)>,
    /// What the search took.
    pub statistics: Statistics,
}

impl<'a> Pipeline<'a> {
    /// Searches by the analytical model.
    #[must_use]
    pub fn search(program: &'a Program, goal: &'a Goal<Cpu>, options: &Options) -> Self {
        let (dag, levels) = (Dag::new(program), Levels::of_cpu(goal));
        let found = {
            let model = Analytical::new(&dag, &levels, Machine::of(goal));
            search(&dag, &levels, &model, options)
        };
        let (states, statistics) = (found.states, found.statistics);
        Self { program, goal, dag, levels, states, statistics }
    }

    /// The schedule of a state.
    ///
    /// # Errors
    /// If a step that the state asks for is refused, or the result makes more code than lowering allows.
    pub fn decode(&self, state: &State) -> Result<Schedule, Rejection> {
        let draft = decode::decode(self, state)?;
        match lower(draft.nest) {
            Ok(_) => Ok(draft.schedule),
            Err(error) => Err(Rejection { rule: "lower", reason: error.to_string() }),
        }
    }
}

/// Schedules of a program, the best by the model first, with the cycles that it expects: what
/// [`pipeline_schedules`](crate::pipeline_schedules) are for a processor.
pub(crate) fn schedules(
    program: &Program,
    goal: &Goal<Cpu>,
    options: &Options,
    count: usize,
) -> Vec<(Schedule, f64)> {
    let found = Pipeline::search(program, goal, options);
    let states = found.states.iter().take(count.saturating_mul(TRIES));
    let mut schedules: Vec<(Schedule, f64)> = Vec::new();
    for (state, cost) in states {
        if schedules.len() >= count {
            break;
        }
        // Two states may come to the same where extents are small.
        if let Ok(schedule) = found.decode(state)
            && !schedules.iter().any(|(known, _)| *known == schedule)
        {
            schedules.push((schedule, *cost));
        }
    }
    schedules
}
