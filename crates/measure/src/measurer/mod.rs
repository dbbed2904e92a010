//! [`Measurer`]: the parent's side.

mod child_slot;
mod core_assignment;
mod dispatch;
mod finalists;
mod names;
mod replies;
mod start;

pub use child_slot::{StepTimes, TrialResult};
pub use finalists::Finalist;

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tensorwright::{Program, Schedule};
use tensorwright_device::DeviceProgram;
use tensorwright_outcome::Outcome;

use self::child_slot::{Built, ChildSlot, Job, Purpose, Run};
use self::core_assignment::CoreAssignment;
use self::names::Names;
use crate::child::{Child, Event, Spawner};
use crate::protocol::Setup;
use crate::{Config, MeasureError, Roofline};

/// Builds, checks and times candidates of one program in child processes.
///
/// [`submit`](Self::submit) queues candidates, and [`next`](Self::next) returns outcomes in the
/// order in which they become known. Only the children make progress while neither is called, so
/// keep calling `next`. Whatever a candidate does, it comes back as an [`Outcome`].
///
/// Dropping a measurer kills its children and waits until they are gone.
#[derive(Debug)]
pub struct Measurer {
    config: Config,
    names: Names,
    setup: Setup,
    events: Receiver<Event>,
    /// Dropped before the spawner, so that children are gone before the thread that started them
    /// ends.
    builders: Vec<ChildSlot<Box<Job>>>,
    runner: ChildSlot<Run>,
    spawner: Spawner,
    /// The processors of builders and runner, if there are enough to keep them apart.
    places: CoreAssignment,
    /// Candidates to build.
    queue: VecDeque<Job>,
    /// Candidates to run.
    built: VecDeque<Built>,
    finished: VecDeque<TrialResult>,
    /// The state of each finalist, by index.
    finalists: Vec<Option<Result<Built, Outcome>>>,
    /// The result of a comparison of finalists, when it is over.
    compared: Option<Vec<Finalist>>,
    /// Trials wait while finalists are compared.
    is_comparing: bool,
    /// Built candidates run before more are built, where both would disturb each other.
    is_draining: bool,
    best: Option<f64>,
    roofline: Roofline,
    requests: u64,
}

impl Measurer {
    /// Starts children for a program and computes its expected results.
    ///
    /// # Errors
    /// If children cannot be started, or the expected results cannot be computed.
    pub fn start(program: &Program, config: Config) -> Result<Self, MeasureError> {
        start::start(program, config)
    }

    /// Queues a candidate. Its outcome carries the number.
    pub fn submit(&mut self, id: u64, schedule: &Schedule) {
        self.enqueue(Purpose::Trial(id), schedule, None);
    }

    /// Queues machine code in place of a compiled schedule: for tests of what a candidate can do.
    #[doc(hidden)]
    pub fn submit_object(&mut self, id: u64, schedule: &Schedule, object: Vec<u8>) {
        self.enqueue(Purpose::Trial(id), schedule, Some(object));
    }

    /// Queues a program for the target device. `error_growth` is the factor by which its rounding
    /// errors may exceed those of the program's own sums: one if it adds in the same way as the
    /// source text.
    pub fn submit_program(&mut self, id: u64, program: &DeviceProgram, error_growth: f64) {
        match Built::of_program(Purpose::Trial(id), program, error_growth) {
            Ok(built) => self.built.push_back(*built),
            Err((job, outcome)) => self.finish(*job, outcome),
        }
        self.dispatch();
    }

    fn enqueue(&mut self, purpose: Purpose, schedule: &Schedule, object: Option<Vec<u8>>) {
        match self.names.told(schedule) {
            Ok(text) => self.queue.push_back(Job { object, ..Job::new(purpose, text) }),
            Err(outcome) => self.finish(Job::new(purpose, schedule.to_string()), outcome),
        }
        self.dispatch();
    }

    /// The number of submitted candidates whose outcome was not returned yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let building = self.builders.iter().filter(|builder| builder.task.is_some()).count();
        let running = usize::from(self.runner.task.is_some());
        self.queue.len() + building + self.built.len() + running + self.finished.len()
    }

    /// The next known outcome of a candidate. `None` if it takes longer than `wait`, or nothing is
    /// in flight.
    pub fn next(&mut self, wait: Duration) -> Option<TrialResult> {
        let until = Instant::now() + wait;
        self.pump(until, |measurer| !measurer.finished.is_empty() || measurer.in_flight() == 0);
        let finished = self.finished.pop_front()?;
        Some(TrialResult { outcome: self.names.heard(finished.outcome), ..finished })
    }

    /// Sets the seconds of the best candidate: candidates several times slower are cut short.
    pub fn set_best(&mut self, seconds: f64) {
        self.best = Some(seconds).filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    }

    /// Forgets the candidates that are not being built or run now. The others still come back from
    /// [`next`](Self::next).
    pub fn cancel(&mut self) {
        self.queue.clear();
        self.built.clear();
    }

    /// The roofline of the program on this machine.
    #[must_use]
    pub fn roofline(&self) -> Roofline {
        self.roofline
    }

    /// The process ids of the builders and the runner: for tests that kill them.
    #[doc(hidden)]
    #[must_use]
    pub fn processes(&self) -> (Vec<u32>, Option<u32>) {
        let builders = self.builders.iter().filter_map(|slot| slot.child.as_ref());
        (builders.map(Child::id).collect(), self.runner.child.as_ref().map(Child::id))
    }
}
