//! Candidates in progress, and the slots of children that process them.

use std::time::{Duration, Instant};

use tensorwright_device::DeviceProgram;
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_runtime::Activity;

use crate::child::Child;
use crate::protocol::Description;

/// The deadline for a child to become ready. It takes 0.1 s on an idle machine.
pub(super) const START_DEADLINE: Duration = Duration::from_secs(60);

/// After this many children in a row fail to become ready, no more are started.
pub(super) const MOST_FAILURES: u32 = 3;

/// A build that uses fewer CPU seconds between two checks hangs: the system counts in hundredths.
const LEAST_PROGRESS: f64 = 0.01;

/// The minimum seconds until the next check of a late build.
const LEAST_WAIT: f64 = 0.5;

/// The outcome of a candidate and the time it took.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// Its number, from the submission.
    pub id: u64,
    /// Its outcome.
    pub outcome: Outcome,
    /// The time it took.
    pub spent: StepTimes,
}

/// The durations of a candidate's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepTimes {
    /// Applying the schedule, lowering, compiling.
    pub build: Duration,
    /// Linking, the checked call, and comparing its result.
    pub check: Duration,
    /// The calls that were timed.
    pub time: Duration,
}

/// The receiver of a candidate's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The caller, who submitted it with this number.
    Trial(u64),
    /// The comparison of finalists, at this index.
    Finalist(usize),
}

/// A candidate to build and run.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) purpose: Purpose,
    pub(super) schedule: String,
    /// Machine code to use instead of compiling.
    pub(super) object: Option<Vec<u8>>,
    pub(super) spent: StepTimes,
    /// Whether this is its second build: a builder died during the first, maybe of something else.
    pub(super) is_second_build: bool,
    /// Whether this is its second run: a runner died during the first, maybe of something else.
    pub(super) is_second_run: bool,
}

/// A built candidate.
#[derive(Debug, Clone)]
pub(super) struct Built {
    pub(super) job: Job,
    pub(super) description: Description,
    pub(super) object: Vec<u8>,
}

impl Job {
    pub(super) fn new(purpose: Purpose, schedule: String) -> Self {
        let (object, spent) = (None, StepTimes::default());
        Self { purpose, schedule, object, spent, is_second_build: false, is_second_run: false }
    }
}

impl Built {
    /// A program for a device, which the runner compiles; or its outcome if it cannot be sent
    /// there.
    pub(super) fn of_program(
        purpose: Purpose,
        program: &DeviceProgram,
        error_growth: f64,
    ) -> Result<Box<Self>, (Box<Job>, Outcome)> {
        let job = Job::new(purpose, String::new());
        let description = Description { interface: program.interface.clone(), error_growth };
        match serde_json::to_vec(program) {
            Ok(object) => Ok(Box::new(Self { job, description, object })),
            Err(error) => Err((Box::new(job), Outcome::BuildFailed { reason: error.to_string() })),
        }
    }
}

/// The current task of a child.
#[derive(Debug)]
pub(super) struct Task<T> {
    /// The number of the request.
    pub(super) request: u64,
    pub(super) what: T,
    pub(super) phase: Phase,
    /// When the phase began.
    pub(super) since: Instant,
    /// Its time limit; for building, its limit of CPU time.
    pub(super) limit: Duration,
    /// The next check of the clock, after `since`.
    wait: Duration,
    /// The CPU seconds of the child when the phase began, and at the last check.
    used: [f64; 2],
}

impl<T> Task<T> {
    pub(super) fn new(request: u64, what: T) -> Self {
        let (since, limit) = (Instant::now(), Duration::ZERO);
        Self { request, what, phase: Phase::Build, since, limit, wait: limit, used: [0.0; 2] }
    }

    /// Begins a phase with a time limit.
    pub(super) fn begin(&mut self, phase: Phase, limit: Duration) {
        (self.phase, self.since) = (phase, Instant::now());
        (self.limit, self.wait) = (limit, limit);
    }
}

/// The current work of a runner.
#[derive(Debug)]
pub(super) enum Run {
    /// One candidate.
    Trial(Box<Built>),
    /// Candidates in turns.
    Comparison,
}

/// A slot for one child at a time.
#[derive(Debug)]
pub(super) struct ChildSlot<T> {
    pub(super) child: Option<Child>,
    /// Its deadline to become ready; `None` once it is.
    pub(super) ready_by: Option<Instant>,
    pub(super) task: Option<Task<T>>,
    /// The number of tasks it has done.
    pub(super) served: u32,
    /// The time they took.
    pub(super) busy: Duration,
    /// The number of children in a row that did not become ready.
    pub(super) failures: u32,
    /// The message of the last of them.
    pub(super) complaint: String,
}

impl<T> ChildSlot<T> {
    pub(super) fn empty() -> Self {
        Self {
            child: None,
            ready_by: None,
            task: None,
            served: 0,
            busy: Duration::ZERO,
            failures: 0,
            complaint: String::new(),
        }
    }

    /// Puts a new child into the slot.
    pub(super) fn occupy(&mut self, child: Child) {
        self.child = Some(child);
        self.ready_by = Some(Instant::now() + START_DEADLINE);
        self.served = 0;
        self.busy = Duration::ZERO;
    }

    /// Whether the slot holds the child with this number.
    pub(super) fn has(&self, number: u64) -> bool {
        self.child.as_ref().is_some_and(|child| child.number == number)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.child.is_some() && self.ready_by.is_none()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_ready() && self.task.is_none()
    }

    /// Whether the slot stays empty for good.
    pub(super) fn is_given_up(&self) -> bool {
        self.child.is_none() && self.failures >= MOST_FAILURES
    }

    /// The deadline of the current task.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.child.as_ref()?;
        self.ready_by.or_else(|| self.task.as_ref().map(|task| task.since + task.wait))
    }

    /// Gives the child a task whose first phase has this limit.
    pub(super) fn assign(&mut self, mut task: Task<T>, phase: Phase, limit: Duration) {
        task.begin(phase, limit);
        task.used = [self.processor_seconds(); 2];
        self.task = Some(task);
    }

    /// Extends the deadline of a build that is late only because other processes kept it from the
    /// CPU; it may use all of its CPU time. A build that makes no progress is late.
    pub(super) fn postpone(&mut self) -> bool {
        let used = self.processor_seconds();
        let Some(task) = self.task.as_mut().filter(|task| task.phase == Phase::Build) else {
            return false;
        };
        let [begin, last] = task.used;
        let missing = task.limit.as_secs_f64() - (used - begin);
        if missing <= 0.0 || used - last < LEAST_PROGRESS {
            return false;
        }
        task.used[1] = used;
        task.wait = task.since.elapsed() + Duration::from_secs_f64(missing.max(LEAST_WAIT));
        true
    }

    /// The CPU time that the child has used.
    fn processor_seconds(&self) -> f64 {
        let activity = self.child.as_ref().and_then(|child| Activity::of(child.id()));
        activity.map_or(0.0, |activity| activity.seconds)
    }

    /// Takes the task away when it is done.
    pub(super) fn done(&mut self) -> Option<Task<T>> {
        let task = self.task.take()?;
        self.served += 1;
        self.busy += task.since.elapsed();
        Some(task)
    }
}
