//! The schedule of a program of which nothing was measured.

use tensorwright_lang::program::Program;
use tensorwright_schedule::{Draft, Schedule, canonical, lower};
use tensorwright_target::{Cpu, Goal};

use crate::cpu::rules::{complete, schedule_by_rules};
use crate::{Preset, ScheduleSpace, alternatives};

/// Points that are tried until one can be lowered.
const TRIES: usize = 16;

/// Programs with more stages are scheduled by rules alone: the model takes milliseconds per stage.
const MOST_STAGES: usize = 24;

/// The schedule of a program of which nothing was measured: the best point of its space by the cost
/// model if it has sums to tile, what [rules](schedule_by_rules) say otherwise. It applies to the
/// program's canonical nest, and the result can be lowered.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_target::{Cpu, Goal};
/// use tensorwright_policy::untuned_schedule;
///
/// let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
/// let program = Module::parse("gemm.tc", text)?.bind("gemm", [("M", 64), ("N", 64), ("K", 64)])?;
/// let schedule = untuned_schedule(&program, &Goal::new(Cpu::avx512()));
/// assert!(schedule.to_string().contains("vectorize"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn untuned_schedule(program: &Program, goal: &Goal<Cpu>) -> Schedule {
    Untuned::of(program, goal).schedule
}

/// A schedule of which nothing was measured, and what the model expects of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Untuned {
    /// The schedule that [`untuned_schedule`] says.
    pub schedule: Schedule,
    /// The cycles of a call: by the cost model if it chose the schedule, otherwise as many as the
    /// arithmetic and the bytes need at least.
    pub cycles: f64,
}

impl Untuned {
    /// The schedule of a program, with its cost.
    #[must_use]
    pub fn of(program: &Program, goal: &Goal<Cpu>) -> Self {
        match modelled(program, goal) {
            Ok(modelled) => modelled,
            Err(schedule) => Self { schedule, cycles: least_cycles(program, goal) },
        }
    }
}

/// The cycles that arithmetic and bytes need at least: a vector of each at a time.
fn least_cycles(program: &Program, goal: &Goal<Cpu>) -> f64 {
    let analysis = program.analysis();
    let vectors = analysis.flops as f64 * 4.0 / goal.target.vector_bytes() as f64;
    vectors.max(analysis.min_bytes as f64 / goal.target.vector_bytes() as f64)
}

/// What the model chooses; what rules say where there is nothing to model.
fn modelled(program: &Program, goal: &Goal<Cpu>) -> Result<Untuned, Schedule> {
    let rules = || schedule_by_rules(program, goal);
    if program.stages.len() > MOST_STAGES {
        return Err(rules());
    }
    let begun = alternatives(program, goal.precision).into_iter().next();
    let begun = begun.unwrap_or_else(|| Draft::new(canonical(program)));
    let space = ScheduleSpace::of(begun.clone(), goal, &Preset::Full.options());
    if !space.has_sums() {
        return Err(complete(begun, goal).schedule);
    }
    let applies = |schedule: &Schedule| {
        schedule.apply(canonical(program)).is_ok_and(|nest| lower(nest).is_ok())
    };
    let points = space.ranked(TRIES);
    let decoded = |point| Some((space.decode(point).ok()?, point));
    let mut schedules = points.iter().filter_map(decoded);
    let (schedule, point) = schedules.find(|(schedule, _)| applies(schedule)).ok_or_else(rules)?;
    Ok(Untuned { schedule, cycles: space.estimate(point) })
}
