//! Measures training schedules on this machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tensorwright::{Goal, Program, Target};
use tensorwright_measure::{Config, MeasureError, Measurer, TimingPlan, WorkerCommand};
use tensorwright_pipeline::{Machine, Sample};
use tensorwright_policy::cpu::Pipeline;

use crate::candidates::candidates;

/// The interval at which the caller is asked whether to continue.
const TICK: Duration = Duration::from_millis(200);

/// Schedules slower than this multiple of the best time are measured twice.
const DOUBTFUL: f64 = 4.0;

/// What to measure, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How to start the processes that build and run.
    pub worker: WorkerCommand,
    /// The target and options of code generation.
    pub goal: Goal,
    /// The maximum number of schedules per program.
    pub schedules: usize,
    /// The time limit per program; schedules not measured by then are dropped.
    pub longest: Duration,
    /// The seed for schedules and inputs.
    pub seed: u64,
}

/// Measures schedules of a program. Each is verified first; failed or unmeasured schedules yield no
/// samples, nor do programs for other targets than CPUs.
///
/// # Errors
/// If measuring is impossible.
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
    // Training needs slow schedules too.
    config.timing = TimingPlan { cut: 8.0, glance: 4.0, hopeless: 16.0, ..TimingPlan::default() };
    let begun = Instant::now();
    let mut measurer = Measurer::start(program, config)?;
    for (number, (_, schedule)) in states.iter().enumerate() {
        measurer.submit(number as u64, schedule);
    }
    let mut taken: Vec<Option<f64>> = vec![None; states.len()];
    let mut again: Vec<usize> = Vec::new();
    let mut best = f64::INFINITY;
    loop {
        if measurer.in_flight() == 0 {
            // Slow schedules are timed once and may have been interrupted: the lesser of two times
            // counts.
            let doubtful = taken.iter().enumerate().filter(|(number, seconds)| {
                seconds.is_some_and(|seconds| seconds > DOUBTFUL * best) && !again.contains(number)
            });
            let doubtful: Vec<usize> = doubtful.map(|(number, _)| number).collect();
            if doubtful.is_empty() {
                break;
            }
            doubtful.iter().for_each(|number| measurer.submit(*number as u64, &states[*number].1));
            again.extend(doubtful);
        }
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
        if let Some(least) = taken.get_mut(finished.id as usize) {
            *least = Some(least.map_or(timing.seconds, |known| known.min(timing.seconds)));
        }
    }
    let about = (&pipeline.dag, &pipeline.levels, &machine);
    let timed = states.iter().zip(taken);
    let found = timed
        .filter_map(|((state, _), seconds)| Some(Sample::new(name, about, state, seconds?)))
        .collect();
    Ok(found)
}
