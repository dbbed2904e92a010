//! The schedule of a program of which nothing was measured.

use tensorwright_lang::precision::Precision;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_schedule::{Draft, LoopNest, Schedule, Window, canonical};

use crate::algorithm::alternatives_of;
use crate::pipelines::instead_of;
use crate::sketch::Policy;
use crate::targets::policy;
use crate::{Preset, ScheduleSpace, alternatives};

/// Points that are tried until one can be lowered.
const TRIES: usize = 16;

/// Programs with more stages are scheduled by rules alone: the model takes milliseconds per stage.
const MOST_STAGES: usize = 24;

/// The schedule of a program of which nothing was measured: the best point of its space by the cost
/// model if it has sums to tile, what [rules](crate::cpu::rules) say otherwise; and where that leaves large
/// tensors of several stages whole, what a greedy search over pipelines finds. It applies to the program's
/// canonical nest, and the result can be lowered.
///
/// ```
/// use tensorwright_lang::Module;
/// use tensorwright_machine::{Cpu, Goal};
/// use tensorwright_policy::default_schedule;
///
/// let text = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
/// let program = Module::parse("gemm.tc", text)?.bind("gemm", [("M", 64), ("N", 64), ("K", 64)])?;
/// let schedule = default_schedule(&program, &Goal::new(Cpu::avx512()).into())?;
/// assert!(schedule.to_string().contains("vectorize"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A kind of target that there is no policy for.
pub fn default_schedule(program: &Program, goal: &Goal) -> Result<Schedule, TargetError> {
    Ok(DefaultSchedule::of(program, goal)?.schedule)
}

/// A schedule of which nothing was measured, and what the model expects of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DefaultSchedule {
    /// The schedule that [`default_schedule`] says.
    pub schedule: Schedule,
    /// The cycles of a call: by the cost model if it chose the schedule, otherwise as many as the
    /// arithmetic and the bytes need at least.
    pub cycles: f64,
}

impl DefaultSchedule {
    /// The schedule of a program, with its cost.
    ///
    /// # Errors
    /// A kind of target that there is no policy for.
    pub fn of(program: &Program, goal: &Goal) -> Result<Self, TargetError> {
        let policy = policy(goal)?;
        let mut found = Self::alone(program, goal)?;
        if let Some(schedule) = instead_of(program, policy.as_ref(), &found.schedule) {
            found.schedule = schedule;
        }
        Ok(found)
    }

    /// The schedule by the model of a space, or by rules.
    fn alone(program: &Program, goal: &Goal) -> Result<Self, TargetError> {
        let policy = policy(goal)?;
        let nest = canonical(program);
        if Window::suits(&nest) {
            let schedule = in_pieces(nest, goal.precision, policy.as_ref());
            return Ok(Self { schedule, cycles: policy.least_cycles(program) });
        }
        let begun = alternatives(program, goal.precision).into_iter().next();
        let begun = begun.unwrap_or_else(|| Draft::new(nest));
        if program.stages.len() <= MOST_STAGES {
            let space = ScheduleSpace::of(begun.clone(), goal, &Preset::Full.options())?;
            if let Some(modelled) = modelled(program, &space, policy.as_ref()) {
                return Ok(modelled);
            }
        }
        Ok(Self { schedule: policy.by_rules(begun).schedule, cycles: policy.least_cycles(program) })
    }
}

/// The schedule of a large program by rules, piece by piece: what is computed for several pieces stays where it is.
fn in_pieces(nest: LoopNest, precision: Precision, policy: &dyn Policy) -> Schedule {
    let mut window = Window::new(nest);
    let mut schedule = Schedule::default();
    while window.advance() {
        let begun = alternatives_of(window.nest(), precision).into_iter().next();
        let begun = begun.unwrap_or_else(|| Draft::new(window.nest().clone()));
        let piece = policy.by_rules(begun);
        schedule.steps.extend(piece.schedule.steps);
        window.set(piece.nest);
    }
    // Plain loops always can be lowered.
    if policy.lowers(window.whole()) { schedule } else { Schedule::default() }
}

/// What the model chooses; `None` where there is nothing to model, or nothing of it applies.
fn modelled(
    program: &Program,
    space: &ScheduleSpace,
    policy: &dyn Policy,
) -> Option<DefaultSchedule> {
    if !space.has_sums() {
        return None;
    }
    let applies = |schedule: &Schedule| {
        schedule.apply(canonical(program)).is_ok_and(|nest| policy.lowers(nest))
    };
    let points = space.ranked(TRIES);
    let decoded = |point| Some((space.decode(point).ok()?, point));
    let mut schedules = points.iter().filter_map(decoded);
    let (schedule, point) = schedules.find(|(schedule, _)| applies(schedule))?;
    Some(DefaultSchedule { schedule, cycles: space.estimate(point) })
}
