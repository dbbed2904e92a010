//! GPU scheduling: the `Policy` implementation.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, Gpu};
use tensorwright_pipeline::Weights;
use tensorwright_schedule::ScheduleState;
use tensorwright_schedule::nest::LoopNest;

use super::cost::LAUNCH;
use super::lowering::lowers;
use super::pipeline::Pipeline;
use super::rules;
use super::sketch::GpuSketch;
use crate::SpaceOptions;
use crate::pipelines::{ON_PROCESSORS, PipelineSearch, Traffic};
use crate::sketch::{Policy, Sketch};

/// Programs with more stages are left to rules.
const MOST_STAGES: usize = 128;

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

    fn searched_stages(&self) -> RangeInclusive<usize> {
        if self.target.is_processor { ON_PROCESSORS } else { 2..=MOST_STAGES }
    }

    fn may_fuse_more(&self, schedule: &Traffic, results: f64) -> bool {
        match self.target.is_processor {
            true => schedule.may_move_less(results, self.target.l2),
            false => schedule.launches > 1,
        }
    }

    /// Compares memory, arithmetic and launches, as if they followed each other. On processors
    /// barriers cost more than launches (`ACROSS_BARRIERS` in `cost.rs`), so that bytes decide.
    fn is_better(&self, new: &Traffic, old: &Traffic) -> bool {
        if self.target.is_processor {
            return new.moves_less(old, self.target.l2);
        }
        let lanes = self.target.units.saturating_mul(self.target.warp).max(1) as f64;
        let cycles = |of: &Traffic| {
            let memory = of.bytes / self.target.bytes_per_cycle();
            memory + of.instructions / lanes + LAUNCH * of.launches as f64
        };
        new.launches < old.launches && cycles(new) < cycles(old)
    }

    /// The cost model is analytical and ignores weights.
    fn pipeline(&self, program: &Program, _: Option<Arc<Weights>>) -> Box<dyn PipelineSearch> {
        Box::new(Pipeline::new(program, self))
    }
}
