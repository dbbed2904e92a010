//! Sources of schedules: one file and one line of [`KINDS`] each.

mod pipeline;
mod policy;
mod random;
mod space;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tensorwright_lang::precision::Precision;
use tensorwright_lang::program::Program;
use tensorwright_machine::{Cpu, Goal, Target, TargetError};
use tensorwright_schedule::{LoopNest, Schedule, canonical};
use tensorwright_testkit::Rng;

use super::tally::Tally;

pub(crate) use random::required;

/// A source of schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Random primitives that the nest accepts.
    Random,
    /// Decoded legal points of search spaces.
    Space,
    /// Default schedules.
    Policy,
    /// Proposals of the pipeline search.
    Pipeline,
    /// Random primitives, mostly binding loops to blocks and threads of a device.
    Gpu,
    /// Legal points of spaces for devices.
    GpuSpace,
    /// Default schedules for devices.
    GpuPolicy,
    /// Proposals of the pipeline search for devices.
    GpuPipeline,
}

const KINDS: [(&str, Kind); 8] = [
    ("random", Kind::Random),
    ("space", Kind::Space),
    ("policy", Kind::Policy),
    ("pipeline", Kind::Pipeline),
    ("gpu", Kind::Gpu),
    ("gpu-space", Kind::GpuSpace),
    ("gpu-policy", Kind::GpuPolicy),
    ("gpu-pipeline", Kind::GpuPipeline),
];

impl Kind {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// All names.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(name, _)| *name)
    }

    /// The kind with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    /// Whether the schedules must apply and lower. Random ones may conflict.
    pub(crate) fn is_promised(self) -> bool {
        !matches!(self, Kind::Random | Kind::Gpu)
    }

    /// A schedule generator for a program.
    pub(crate) fn maker(self, program: &Program, rng: &mut Rng) -> Result<Maker, MakerError> {
        match self {
            Kind::Random => Ok(Maker::Random),
            Kind::Policy => Ok(Maker::Policy),
            Kind::Pipeline => Ok(Maker::Pipeline),
            Kind::Gpu => Ok(Maker::Gpu),
            Kind::GpuPolicy => Ok(Maker::GpuPolicy),
            Kind::GpuPipeline => Ok(Maker::GpuPipeline),
            Kind::Space | Kind::GpuSpace => {
                let goal = if self == Kind::Space { goal(rng).into() } else { device_goal(rng) };
                guarded(|| space::Spaces::of(program, &goal, rng)).map(Maker::Space)
            }
        }
    }
}

/// A schedule generator for one program.
pub(crate) enum Maker {
    /// Of [`Kind::Random`].
    Random,
    /// Of [`Kind::Space`].
    Space(space::Spaces),
    /// Of [`Kind::Policy`].
    Policy,
    /// Of [`Kind::Pipeline`].
    Pipeline,
    /// Of [`Kind::Gpu`].
    Gpu,
    /// Of [`Kind::GpuPolicy`].
    GpuPolicy,
    /// Of [`Kind::GpuPipeline`].
    GpuPipeline,
}

/// A generated schedule.
pub(crate) struct DrawnSchedule {
    /// The schedule.
    pub(crate) schedule: Schedule,
    /// The scheduled nest, if it is known.
    pub(crate) nest: Option<LoopNest>,
}

/// The panic message of a generator, or its error.
pub(crate) struct MakerError(pub(crate) String);

impl Maker {
    /// A schedule for the generator's program; `None` if none is small enough.
    pub(crate) fn draw(
        &self,
        program: &Program,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Result<Option<DrawnSchedule>, MakerError> {
        match self {
            Maker::Random => Ok(Some(random::random(canonical(program), rng, tally))),
            Maker::Gpu => Ok(Some(random::for_device(canonical(program), rng, tally))),
            Maker::Space(spaces) => guarded(|| Ok(spaces.draw(program, rng, tally))),
            Maker::Policy => guarded(|| policy::draw(program, rng, tally)),
            Maker::GpuPolicy => guarded(|| policy::for_device(program, rng, tally)),
            Maker::Pipeline => {
                let goal = goal(rng).into();
                guarded(|| pipeline::draw(program, &goal, rng, tally))
            }
            Maker::GpuPipeline => {
                let goal = device_goal(rng);
                guarded(|| pipeline::draw(program, &goal, rng, tally))
            }
        }
    }
}

/// The result of a function; panics and refusals become errors.
fn guarded<T>(make: impl FnOnce() -> Result<T, TargetError>) -> Result<T, MakerError> {
    let made = catch_unwind(AssertUnwindSafe(make)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        MakerError(text.unwrap_or_else(|| "a panic without words".to_owned()))
    })?;
    made.map_err(|refused| MakerError(refused.to_string()))
}

/// Random CPU parameters, threads and precision.
fn goal(rng: &mut Rng) -> Goal<Cpu> {
    let goal = match rng.index(4) {
        0 => Goal::new(Cpu::neon()),
        1 => Goal::new(Cpu::avx2()),
        _ => Goal::new(Cpu::avx512()),
    };
    let precision = if rng.percent(20) { Precision::Exact } else { Precision::Fast };
    goal.with_workers(rng.range(1, 2)).with_precision(precision)
}

/// Random device parameters and precision.
fn device_goal(rng: &mut Rng) -> Goal {
    let name = *rng.pick(&["cuda:sm_70", "cuda:sm_80", "cuda:sm_90"]);
    let precision = if rng.percent(20) { Precision::Exact } else { Precision::Fast };
    // Without such a target, applying the schedule will fail and report it.
    let target = Target::named(name).unwrap_or_else(|_| Cpu::avx512().into());
    Goal::new(target).with_precision(precision)
}

/// A schedule with its nest, if it is small. A rejected schedule passes, because applying it again
/// reports the problem.
fn small(schedule: Schedule, program: &Program, tally: &mut Tally) -> Option<DrawnSchedule> {
    let nest = schedule.apply(canonical(program)).ok();
    let is_small = nest.as_ref().is_none_or(random::is_small);
    tally.count("[small enough]", is_small);
    is_small.then_some(DrawnSchedule { schedule, nest })
}
