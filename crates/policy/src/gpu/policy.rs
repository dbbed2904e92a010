//! What there is for graphics processors.

use tensorwright_lang::program::Program;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{Draft, Schedule};
use tensorwright_target::{Goal, Gpu};

use super::lowering::lowers;
use super::rules;
use super::sketch::GpuSketch;
use crate::Options;
use crate::proposals::PipelineSchedules;
use crate::sketch::{Policy, Sketch};

impl Policy for Goal<Gpu> {
    fn sketch(&self, begun: Draft, options: &Options) -> Box<dyn Sketch> {
        Box::new(GpuSketch::of(begun, self, options))
    }

    fn by_rules(&self, begun: Draft) -> Schedule {
        rules::complete(begun, self).schedule
    }

    fn lowers(&self, nest: LoopNest) -> bool {
        lowers(&nest, &self.target)
    }

    /// A warp of operations at a time in every multiprocessor.
    fn least_cycles(&self, program: &Program) -> f64 {
        let lanes = self.target.units.saturating_mul(self.target.warp).max(1);
        program.analysis().flops as f64 / lanes as f64
    }

    /// What one launch leaves in memory, the next one reads there.
    fn fused(&self, _: &Program, _: &Schedule) -> Option<Schedule> {
        None
    }

    fn pipelines(
        &self,
        _: &Program,
        _: &tensorwright_pipeline::Options,
        _: usize,
    ) -> PipelineSchedules {
        PipelineSchedules::default()
    }
}
