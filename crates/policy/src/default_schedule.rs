//! The default schedule of a program, chosen without measurements.

use tensorwright_lang::precision::Precision;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Goal, TargetError};
use tensorwright_schedule::{LoopNest, Schedule, ScheduleState, Window, canonical};

use crate::algorithm::alternatives_of;
use crate::pipelines::instead_of;
use crate::sketch::Policy;
use crate::targets::policy;
use crate::{Preset, ScheduleSpace, alternatives};

/// The maximum number of points to try until one can be lowered.
const TRIES: usize = 16;

/// Programs with more stages are scheduled by rules alone: the model takes milliseconds per stage.
const MOST_STAGES: usize = 24;

/// The default schedule of a program. If the program has sums to tile, it is the best point of its
/// search space by the cost model, otherwise the schedule by [rules](crate::cpu::rules). If that
/// leaves large intermediate tensors in memory, or takes several launches, a greedy pipeline search
/// may replace it. The schedule applies to the program's canonical nest, and the result can be
/// lowered.
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
/// An unsupported kind of target.
pub fn default_schedule(program: &Program, goal: &Goal) -> Result<Schedule, TargetError> {
    Ok(DefaultSchedule::of(program, goal)?.schedule)
}

/// A default schedule and its estimated cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DefaultSchedule {
    /// The schedule that [`default_schedule`] returns.
    pub schedule: Schedule,
    /// The estimated cycles of a call: from the cost model if it chose the schedule, otherwise a
    /// lower bound from arithmetic and bytes.
    pub cycles: f64,
    /// What a cost model predicts of this schedule; `None` if rules chose it.
    pub prediction: Option<Prediction>,
}

/// The prediction of a cost model. Those of different models are not comparable.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The cost model: `tiles` for points of a search space, `beam` for pipeline search.
    pub model: &'static str,
    /// The predicted cycles of a call.
    pub cycles: f64,
}

impl DefaultSchedule {
    /// The default schedule of a program, with its cost.
    ///
    /// # Errors
    /// An unsupported kind of target.
    pub fn of(program: &Program, goal: &Goal) -> Result<Self, TargetError> {
        let policy = policy(goal)?;
        let mut found = Self::alone(program, goal)?;
        if let Some((schedule, cycles)) = instead_of(program, policy.as_ref(), &found.schedule) {
            found.schedule = schedule;
            found.prediction = Some(Prediction { model: "beam", cycles });
        }
        Ok(found)
    }

    /// The schedule by the cost model or by rules, without pipeline search.
    fn alone(program: &Program, goal: &Goal) -> Result<Self, TargetError> {
        let policy = policy(goal)?;
        let nest = canonical(program);
        if Window::suits(&nest) {
            let schedule = in_pieces(nest, goal.precision, policy.as_ref());
            return Ok(Self::by_rules(schedule, policy.least_cycles(program)));
        }
        let begun = alternatives(program, goal.precision).into_iter().next();
        let begun = begun.unwrap_or_else(|| ScheduleState::new(nest));
        if program.stages.len() <= MOST_STAGES {
            let space = ScheduleSpace::of(begun.clone(), goal, &Preset::Full.options())?;
            if let Some(modelled) = modelled(program, &space, policy.as_ref()) {
                return Ok(modelled);
            }
        }
        Ok(Self::by_rules(policy.by_rules(begun).schedule, policy.least_cycles(program)))
    }

    /// A schedule that no cost model chose, with a lower bound on its cycles.
    fn by_rules(schedule: Schedule, cycles: f64) -> Self {
        Self { schedule, cycles, prediction: None }
    }
}

/// Schedules a large program by rules, piece by piece. Stages that several pieces read are not
/// fused.
fn in_pieces(nest: LoopNest, precision: Precision, policy: &dyn Policy) -> Schedule {
    let mut window = Window::new(nest);
    let mut schedule = Schedule::default();
    while window.advance() {
        let begun = alternatives_of(window.nest(), precision).into_iter().next();
        let begun = begun.unwrap_or_else(|| ScheduleState::new(window.nest().clone()));
        let piece = policy.by_rules(begun);
        schedule.steps.extend(piece.schedule.steps);
        window.set(piece.nest);
    }
    // Plain loops can always be lowered.
    if policy.lowers(window.whole()) { schedule } else { Schedule::default() }
}

/// The best schedule by the cost model; `None` if the program has no sums, or no point applies.
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
    let cycles = space.estimate(point);
    let prediction = Some(Prediction { model: "tiles", cycles });
    Some(DefaultSchedule { schedule, cycles, prediction })
}
