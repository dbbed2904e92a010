//! Pipeline search for CPUs: states as steps on the canonical nest.
//!
//! ```text
//! out: root 32x256 > 4x256 > 1x64       out: split y 8 4 -> y.parallel y.cache y.in
//! bx: at out parallel ...          ->   out: split x 256 -> x.parallel x.in
//!                                       bx: compute_at out x.parallel
//! ```
//!
//! A state is decoded exactly or refused with a reason. Rules schedule the stages whose loops a
//! state does not decide (products, scans, scatters). If the requested number of vectors per step
//! exceeds the code size limit, one vector per step is used.

mod decode;

use std::sync::Arc;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_pipeline::{
    BeamOptions, CostModel, Dag, Layout, LearnedModel, Levels, Machine, Outcome, Sample, Samples,
    State, Training, Weights, search_while, train,
};
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{Schedule, canonical, lower};
use tensorwright_space::Rejection;

use crate::pipelines::PipelineSearch;

/// The training epochs over measurements of the program.
const EPOCHS: usize = 40;

/// A program of several stages, prepared for pipeline search on CPUs.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_pipeline::BeamOptions;
/// use tensorwright_policy::cpu::Pipeline;
/// use tensorwright_machine::{Cpu, Goal};
///
/// let text = "def blur(float(H,W) in) -> (out) {
///   bx(y,x) = in(y,x) + in(y,x+1)
///   out(y,x) = bx(y,x) + bx(y+1,x) + bx(y+2,x)
/// }";
/// let program = Module::parse("blur.tc", text)?.bind("blur", [("H", 2000), ("W", 2000)])?;
/// let pipeline = Pipeline::new(&program, &Goal::new(Cpu::avx512()));
/// let found = pipeline.search(&BeamOptions::greedy());
/// let (best, cycles) = &found.states[0];
/// println!("{}{cycles} cycles", best.text(&pipeline.dag, &pipeline.levels));
/// let schedule = pipeline.decode(best).map_err(|refused| refused.reason)?;
/// assert!(schedule.to_string().contains("vectorize"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Pipeline {
    /// The canonical loops that schedules apply to.
    nest: LoopNest,
    goal: Goal<Cpu>,
    /// The graph of the program.
    pub dag: Dag,
    /// The loop levels of the target.
    pub levels: Levels,
    /// The trained weights of the cost model.
    weights: Arc<Weights>,
}

impl Pipeline {
    /// Prepares a program for a goal.
    #[must_use]
    pub fn new(program: &Program, goal: &Goal<Cpu>) -> Self {
        let (dag, levels) = (Dag::new(program), Levels::of_cpu(goal));
        let weights = Arc::new(Weights::shipped().clone());
        Self { nest: canonical(program), goal: goal.clone(), dag, levels, weights }
    }

    /// Replaces the [shipped](Weights::shipped) weights of the cost model.
    #[must_use]
    pub fn with_weights(self, weights: Arc<Weights>) -> Self {
        Self { weights, ..self }
    }

    /// The trained weights of the cost model.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The machine parameters of the cost model.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::of(&self.goal)
    }

    fn model(&self) -> LearnedModel<'_> {
        LearnedModel::new(&self.dag, &self.levels, self.machine(), &self.weights)
    }

    /// The estimated cycles of a state.
    #[must_use]
    pub fn cycles(&self, state: &State) -> f64 {
        self.model().state(&Layout::new(&self.dag, state))
    }

    /// Searches with the cost model.
    #[must_use]
    pub fn search(&self, options: &BeamOptions) -> Outcome {
        self.search_while(options, &mut || true)
    }

    /// Searches with the cost model [while `goes_on` returns true](search_while).
    #[must_use]
    pub fn search_while(
        &self,
        options: &BeamOptions,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Outcome {
        search_while(&self.dag, &self.levels, &self.model(), options, goes_on)
    }

    /// The schedule of a state.
    ///
    /// # Errors
    /// If a step of the state is refused, or the result exceeds the code size limit of lowering.
    pub fn decode(&self, state: &State) -> Result<Schedule, Rejection> {
        let lowered = |most_vectors| {
            let draft = decode::decode(self, state, most_vectors)?;
            match lower(draft.nest) {
                Ok(_) => Ok(draft.schedule),
                Err(error) => Err(Rejection { rule: "lower", reason: error.to_string() }),
            }
        };
        match lowered(i64::MAX) {
            Err(refused) if matches!(refused.rule, "vector" | "lower") => lowered(1),
            decoded => decoded,
        }
    }
}

impl PipelineSearch for Pipeline {
    fn dag(&self) -> &Dag {
        &self.dag
    }

    fn levels(&self) -> &Levels {
        &self.levels
    }

    fn cycles(&self, state: &State) -> f64 {
        self.cycles(state)
    }

    fn search_while(&self, options: &BeamOptions, goes_on: &mut dyn FnMut() -> bool) -> Outcome {
        self.search_while(options, goes_on)
    }

    fn decode(&self, state: &State) -> Result<Schedule, Rejection> {
        self.decode(state)
    }

    fn learn(&mut self, measured: &[(State, f64)], seed: u64) -> bool {
        let machine = self.machine();
        let mut samples = Samples::new("", "", &machine);
        let about = (&self.dag, &self.levels, &machine);
        let each = measured.iter().map(|(state, seconds)| Sample::new("", about, state, *seconds));
        samples.list.extend(each);
        let mut training = Training::default();
        training.epochs = EPOCHS;
        training.seed = seed;
        let weights = train(&samples, &training, Some(&self.weights), &mut |_, _, _| true);
        self.weights = Arc::new(weights);
        true
    }
}
