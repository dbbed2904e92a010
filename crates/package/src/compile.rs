//! Compiles the kernels of a plan in parallel.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tensorwright::schedule::Interface;
use tensorwright::schedule::interface::{Function, Parameter as KernelParameter};
use tensorwright::{CodegenOptions, Diagnostics, Goal, LoweredProgram, Program, Schedule, Target};
use tensorwright_policy::DefaultSchedule;
use tensorwright_records::{Store, TrialId};
use tensorwright_tuner::{ScheduleLookup, ScheduleQuery};

use crate::level::{Level, unavailable};
use crate::operator::{Case, Operator};
use crate::options::{BuildOptions, Progress};
use crate::plan::Plan;

/// The stack size of compiling threads: expressions may nest as deeply as in the main thread.
const STACK: usize = 8 << 20;

/// The origin of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    /// A record for this processor, with the seconds of a call.
    Record(TrialId, f64),
    /// A record for another machine or compiler, verified on this one.
    Verified(TrialId),
    /// The default schedule.
    Untuned,
}

impl Origin {
    /// The measured seconds of a call.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match self {
            Self::Record(_, seconds) => Some(*seconds),
            Self::Verified(_) | Self::Untuned => None,
        }
    }
}

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Built {
    /// Its calling interface.
    pub(crate) interface: Interface,
    pub(crate) object: Vec<u8>,
    pub(crate) origin: Origin,
    /// Its arguments, in order.
    pub(crate) slots: Vec<Slot>,
    /// Bit masks of the operator parameters that the kernel and its preparation need.
    pub(crate) needs: u64,
    pub(crate) prepares: u64,
    /// Identifies the preparation of inputs: kernels with equal ones share prepared data.
    pub(crate) preparation: String,
    /// The estimated cycles of a call.
    pub(crate) cycles: f64,
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A parameter of the operator.
    Parameter(usize),
    /// A byte offset into the prepared data.
    Prepared(i64),
}

/// The kernels of a case: by level, then by bucket.
pub(crate) type Kernels = Vec<Vec<Built>>;

/// A kernel to compile.
struct Job<'p> {
    operator: &'p Operator,
    case: &'p Case,
    program: &'p Program,
    level: &'p Level,
    symbol: String,
    what: String,
    remembered: Option<(Schedule, Origin)>,
}

/// Compiles the kernels of a plan: for each operator, for each case, the kernels.
pub(crate) fn compile(
    plan: &Plan,
    options: &BuildOptions<'_>,
) -> Result<Vec<Vec<Kernels>>, Diagnostics> {
    let mut jobs = jobs(plan);
    if let Some(store) = options.records {
        for job in &mut jobs {
            job.remembered = job.remember(store, options.notes);
        }
    }
    let mut built = in_parallel(&jobs, options.progress)?.into_iter();
    let mut of_case = |case: &Case| -> Kernels {
        let buckets = case.programs.len();
        plan.levels.iter().map(|_| built.by_ref().take(buckets).collect()).collect()
    };
    let of_operator = |operator: &Operator| operator.cases.iter().map(&mut of_case).collect();
    Ok(plan.operators.iter().map(of_operator).collect())
}

/// All kernels: by operator, case, level and bucket.
fn jobs(plan: &Plan) -> Vec<Job<'_>> {
    let mut jobs = Vec::new();
    for operator in &plan.operators {
        for (number, case) in operator.cases.iter().enumerate() {
            for level in &plan.levels {
                for (value, program) in &case.programs {
                    let (name, words) = (&operator.name, case.words(&operator.sizes));
                    let mut symbol = format!("{}_{name}_{number}_{}", plan.name, level.name());
                    let mut what = format!("{name} {words} {}", level.name());
                    if case.varying.is_some() {
                        symbol += &format!("_{value}");
                        what += &format!(" [{value}]");
                    }
                    jobs.push(Job {
                        operator,
                        case,
                        program,
                        level,
                        symbol,
                        what,
                        remembered: None,
                    });
                }
            }
        }
    }
    jobs
}

/// Compiles jobs on all cores; returns the first failure in job order.
fn in_parallel(
    jobs: &[Job<'_>],
    progress: &(dyn Fn(&Progress) + Sync),
) -> Result<Vec<Built>, Diagnostics> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<BTreeMap<usize, Result<Built, Diagnostics>>> = Mutex::default();
    let lock = || results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { break };
            let built = job.build();
            if built.is_err() {
                // The remaining jobs are not needed.
                next.store(jobs.len(), Ordering::Relaxed);
            }
            lock().insert(number, built);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(&Progress { done, total: jobs.len(), what: job.what.clone() });
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // If a thread cannot start, the others do its work.
            let _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        }
        work();
    });
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.into_values().collect()
}

impl Job<'_> {
    /// The recorded schedule, if there is one.
    fn remember(&self, store: &dyn Store, notes: &dyn Fn(&str)) -> Option<(Schedule, Origin)> {
        let level = self.level.target();
        let is_level =
            |native: &Target| native.cpu().is_some_and(|cpu| cpu.isa() == self.level.isa());
        let here = Target::native().ok().filter(is_level);
        // Schedules tuned for this machine also suit its level.
        for target in here.iter().chain([level]) {
            let Case { threads, precision, .. } = *self.case;
            let goal = Goal::new(target.clone()).with_threads(threads).with_precision(precision);
            let query = ScheduleQuery { program: self.program, goal: &goal };
            let Ok(recalled) = ScheduleLookup::best(store, &query) else { continue };
            recalled.notes.iter().for_each(|note| notes(&format!("{}: {note}", self.what)));
            match recalled.found {
                ScheduleLookup::Best { schedule, trial, seconds } => {
                    return Some((schedule, Origin::Record(trial, seconds)));
                }
                ScheduleLookup::Near { schedule, trial, .. } => {
                    return Some((schedule, Origin::Verified(trial)));
                }
                found if found.is_for_other_threads() => {
                    notes(&format!("{} is not: {found}", self.what));
                }
                _ => {}
            }
        }
        None
    }

    fn build(&self) -> Result<Built, Diagnostics> {
        let sizes = self.level.goal(self.case.threads).with_precision(self.case.precision);
        let untuned =
            DefaultSchedule::of(self.program.ir(), &sizes).map_err(|e| unavailable(&e))?;
        let (schedule, origin) = match &self.remembered {
            Some((schedule, origin)) => (schedule.clone(), origin.clone()),
            None => (untuned.schedule, Origin::Untuned),
        };
        let mut options = CodegenOptions::default();
        options.hidden = true;
        let builder = self.program.compile().target(self.level.target().clone());
        let builder = builder.threads(self.case.threads).schedule(schedule);
        let lowered = builder.symbol(&self.symbol).options(options).lower()?;
        let object = lowered.object()?;
        Ok(self.describe(&lowered, object, origin, untuned.cycles))
    }

    fn describe(
        &self,
        lowered: &LoweredProgram,
        object: Vec<u8>,
        origin: Origin,
        cycles: f64,
    ) -> Built {
        let interface = lowered.interface().clone();
        let place = |parameter: &KernelParameter| {
            self.operator.parameters.iter().position(|known| known.id == Some(parameter.id))
        };
        let slot = |parameter: &KernelParameter| match parameter.prepared_at {
            Some(offset) => Slot::Prepared(offset),
            None => Slot::Parameter(place(parameter).unwrap_or_default()),
        };
        let mask = |function: Function| {
            let places = interface.explicit(function).filter_map(place);
            places.fold(0, |mask, place| mask | 1 << place)
        };
        Built {
            slots: interface.parameters.iter().map(slot).collect(),
            needs: mask(Function::Compute),
            prepares: mask(Function::Prepare),
            interface,
            object,
            origin,
            preparation: lowered.nest().as_nest().preparation(),
            cycles,
        }
    }
}
