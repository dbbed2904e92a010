//! Pipeline search for GPUs: states as steps on the canonical nest.
//!
//! ```text
//! out: root 8x64 > 4x1 > 1x1            out: split y 2 4 -> y.0 y.1 y.2, split x 64 -> x.0 x.1, bind ...
//! bx: at out block ...             ->   bx: compute_at out x.0, its loops in turns on the threads of `out`
//! ```
//!
//! A state is decoded exactly or refused with a reason. Stages whose loops a state does not decide
//! (products, scans, scatters) are scheduled by the model of `gpu/` or by rules, each as a launch
//! of its own.

mod decode;
mod turns;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, Gpu};
use tensorwright_pipeline::{
    BeamOptions, CostModel, Dag, GpuModel, Layout, Levels, Outcome, State, search_while,
};
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{Schedule, canonical};
use tensorwright_space::Rejection;

use super::lowering;
use crate::pipelines::PipelineSearch;

/// A program of several stages, prepared for pipeline search on GPUs.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    /// The canonical loops that schedules apply to.
    nest: LoopNest,
    goal: Goal<Gpu>,
    dag: Dag,
    levels: Levels,
}

impl Pipeline {
    /// Prepares a program for a goal.
    pub(crate) fn new(program: &Program, goal: &Goal<Gpu>) -> Self {
        let (dag, levels) = (Dag::new(program), Levels::of_gpu(goal));
        Self { nest: canonical(program), goal: goal.clone(), dag, levels }
    }

    fn model(&self) -> GpuModel<'_> {
        GpuModel::new(&self.dag, &self.levels, &self.goal)
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
        self.model().state(&Layout::new(&self.dag, state))
    }

    fn search_while(&self, options: &BeamOptions, goes_on: &mut dyn FnMut() -> bool) -> Outcome {
        search_while(&self.dag, &self.levels, &self.model(), options, goes_on)
    }

    fn decode(&self, state: &State) -> Result<Schedule, Rejection> {
        let draft = decode::decode(self, state)?;
        match lowering::lower(&draft.nest, &self.goal.target) {
            Ok(()) => Ok(draft.schedule),
            Err(reason) => Err(Rejection { rule: "lower", reason }),
        }
    }
}
