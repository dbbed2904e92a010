//! GPU scheduling: the `Policy` implementation.

use std::sync::Arc;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, Gpu};
use tensorwright_pipeline::Weights;
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::LoopNest;

use super::lowering::lowers;
use super::pipeline::Pipeline;
use super::rules;
use super::sketch::GpuSketch;
use crate::SpaceOptions;
use crate::pipelines::PipelineSearch;
use crate::sketch::{Policy, Sketch};

impl Policy for Goal<Gpu> {
    fn sketch(&self, begun: ScheduleState, options: &SpaceOptions) -> Box<dyn Sketch> {
        Box::new(GpuSketch::of(begun, self, options))
    }

    fn by_rules(&self, begun: ScheduleState) -> ScheduleState {
        rules::complete(begun, self)
    }

    fn lowers(&self, nest: LoopNest) -> bool {
        lowers(&nest, &self.target)
    }

    /// Assumes one warp of arithmetic per cycle on every multiprocessor.
    fn least_cycles(&self, program: &Program) -> f64 {
        let lanes = self.target.units.saturating_mul(self.target.warp).max(1);
        program.analysis().flops as f64 / lanes as f64
    }

    fn cache(&self) -> i64 {
        self.target.l2
    }

    /// The cost model is analytical and ignores weights.
    fn pipeline(&self, program: &Program, _: Option<Arc<Weights>>) -> Box<dyn PipelineSearch> {
        Box::new(Pipeline::new(program, self))
    }
}
