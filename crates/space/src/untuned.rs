//! The schedule of a program of which nothing was measured.

use tensorwright_lang::program::Program;
use tensorwright_schedule::default::{alternatives, complete};
use tensorwright_schedule::{Draft, Schedule, Target, canonical, default_schedule, lower};

use crate::{Preset, ScheduleSpace};

/// Points that are tried until one can be lowered.
const TRIES: usize = 16;

/// Programs with more stages are scheduled by rules alone: the model takes milliseconds per stage.
const MOST_STAGES: usize = 24;

/// The schedule of a program of which nothing was measured: the best point of its space by the cost
/// model if it has sums to tile, what [rules](default_schedule) say otherwise. It applies to the
/// program's canonical nest, and the result can be lowered.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_schedule::Target;
/// use tensorwright_space::untuned_schedule;
///
/// let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
/// let program = Module::parse("gemm.tc", text)?.bind("gemm", [("M", 64), ("N", 64), ("K", 64)])?;
/// let schedule = untuned_schedule(&program, &Target::avx512());
/// assert!(schedule.to_string().contains("vectorize"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn untuned_schedule(program: &Program, target: &Target) -> Schedule {
    let rules = || default_schedule(program, target);
    if program.stages.len() > MOST_STAGES {
        return rules();
    }
    let begun = alternatives(program, target).into_iter().next();
    let begun = begun.unwrap_or_else(|| Draft::new(canonical(program)));
    let space = ScheduleSpace::of(begun.clone(), target, &Preset::Full.options());
    if !space.has_sums() {
        return complete(begun, target).schedule;
    }
    let applies = |schedule: &Schedule| {
        schedule.apply(canonical(program)).is_ok_and(|nest| lower(nest).is_ok())
    };
    let points = space.ranked(TRIES);
    let mut schedules = points.iter().filter_map(|point| space.decode(point).ok());
    schedules.find(applies).unwrap_or_else(rules)
}
