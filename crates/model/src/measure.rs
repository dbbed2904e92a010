//! What schedules of a program take on this machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tensorwright_kernel::{Goal, Program, Target};
use tensorwright_measure::{Config, MeasureError, Measurer, TimingPlan, WorkerCommand};
use tensorwright_pipeline::{Machine, Sample};
use tensorwright_policy::cpu::Pipeline;

use crate::candidates::candidates;

/// How often a caller is asked whether to go on.
const TICK: Duration = Duration::from_millis(200);

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How to start the processes that build and run.
    pub worker: WorkerCommand,
    /// What code is made for.
    pub goal: Goal,
    /// Schedules of each program, at most.
    pub schedules: usize,
    /// How long one program may take: what is not measured then is left out.
    pub longest: Duration,
    /// Decides which schedules, and the inputs.
    pub seed: u64,
}

/// Measures schedules of a program; each is verified first, and what fails or is not measured in time is no sample. Programs
/// for other targets than processors have no samples.
///
/// # Errors
/// If candidates cannot be measured at all.
pub fn measure(
    name: &str,
    program: &Program,
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<Vec<Sample>, MeasureError> {
    let Target::Cpu(cpu) = &plan.goal.target else { return Ok(Vec::new()) };
    let goal = plan.goal.for_target(cpu.clone());
    let (pipeline, machine) = (Pipeline::new(program.ir(), &goal), Machine::of(&goal));
    let states = candidates(&pipeline, &machine, plan.schedules, plan.seed);
    let mut config = Config::new(plan.worker.clone(), plan.goal.target.clone());
    config.threads = plan.goal.threads();
    config.seed = plan.seed;
    // Slow schedules are to be learned from as well.
    config.timing = TimingPlan { cut: 8.0, glance: 4.0, hopeless: 16.0, ..TimingPlan::default() };
    let begun = Instant::now();
    let mut measurer = Measurer::start(program, config)?;
    for (number, (_, schedule)) in states.iter().enumerate() {
        measurer.submit(number as u64, schedule);
    }
    let mut found = Vec::new();
    let mut best = f64::INFINITY;
    while measurer.in_flight() > 0 {
        if stop.load(Ordering::Relaxed) || begun.elapsed() > plan.longest {
            measurer.cancel();
            break;
        }
        let Some(finished) = measurer.next(TICK) else { continue };
        let Some(timing) = finished.outcome.timing() else { continue };
        if timing.seconds < best {
            best = timing.seconds;
            measurer.set_best(best);
        }
        if let Some((state, _)) = states.get(finished.id as usize) {
            let about = (&pipeline.dag, &pipeline.levels, &machine);
            found.push(Sample::new(name, about, state, timing.seconds));
        }
    }
    Ok(found)
}
