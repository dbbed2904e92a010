//! CPU scheduling: the `Policy` implementation.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal};
use tensorwright_pipeline::Weights;
use tensorwright_schedule::nest::LoopNest;
use tensorwright_schedule::{ScheduleState, lower};

use crate::SpaceOptions;
use crate::cpu::pipeline::Pipeline;
use crate::cpu::rules::complete;
use crate::cpu::sketch::CpuSketch;
use crate::pipelines::{ON_PROCESSORS, PipelineSearch, Traffic};
use crate::sketch::{Policy, Sketch};

impl Policy for Goal<Cpu> {
    fn sketch(&self, begun: ScheduleState, options: &SpaceOptions) -> Box<dyn Sketch> {
        Box::new(CpuSketch::of(begun, self, options))
    }

    fn by_rules(&self, begun: ScheduleState) -> ScheduleState {
        complete(begun, self)
    }

    fn lowers(&self, nest: LoopNest) -> bool {
        lower(nest).is_ok()
    }

    /// Assumes one vector of arithmetic and one of memory per cycle.
    fn least_cycles(&self, program: &Program) -> f64 {
        let analysis = program.analysis();
        let vectors = analysis.flops as f64 * 4.0 / self.target.vector_bytes() as f64;
        vectors.max(analysis.min_bytes as f64 / self.target.vector_bytes() as f64)
    }

    fn searched_stages(&self) -> RangeInclusive<usize> {
        ON_PROCESSORS
    }

    fn may_fuse_more(&self, schedule: &Traffic, results: f64) -> bool {
        schedule.may_move_less(results, self.target.caches().l2)
    }

    fn is_better(&self, new: &Traffic, old: &Traffic) -> bool {
        new.moves_less(old, self.target.caches().l2)
    }

    fn pipeline(
        &self,
        program: &Program,
        weights: Option<Arc<Weights>>,
    ) -> Box<dyn PipelineSearch> {
        let pipeline = Pipeline::new(program, self);
        Box::new(match weights {
            Some(weights) => pipeline.with_weights(weights),
            None => pipeline,
        })
    }
}
