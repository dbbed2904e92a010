//! What the parent knows of a candidate on its way, and of the children it is with.

use std::time::{Duration, Instant};

use tensorwright_device::DeviceProgram;
use tensorwright_outcome::{Outcome, Phase};
use tensorwright_runtime::Activity;

use crate::child::Child;
use crate::protocol::Description;

/// How long a child may take until it is ready. It takes 0.1 s on a machine that is not busy.
pub(super) const START_DEADLINE: Duration = Duration::from_secs(60);

/// After so many children in a row that did not become ready, no more are started.
pub(super) const MOST_FAILURES: u32 = 3;

/// A build that uses fewer processor seconds between two looks hangs: the system counts them in hundredths.
const LEAST_PROGRESS: f64 = 0.01;

/// The seconds until the next look at a late build, at least.
const LEAST_WAIT: f64 = 0.5;

/// What became of a candidate, and how long that took.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// The number that it was submitted with.
    pub id: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// How long that took.
    pub spent: StepTimes,
}

/// How long the steps of a candidate took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepTimes {
    /// Applying the schedule, lowering, compiling.
    pub build: Duration,
    /// Linking, the checked call, and comparing its result.
    pub check: Duration,
    /// The calls that were timed.
    pub time: Duration,
}

/// Whom the outcome of a candidate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For whoever submitted it with this number.
    Trial(u64),
    /// For the comparison of finalists, in this place.
    Finalist(usize),
}

/// A candidate on its way.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) purpose: Purpose,
    pub(super) schedule: String,
    /// Machine code that takes the place of the compiler's.
    pub(super) object: Option<Vec<u8>>,
    pub(super) spent: StepTimes,
    /// Whether a builder died with it that may have died of something else.
    pub(super) is_second_build: bool,
    /// Whether a runner died with it that may have died of something else.
    pub(super) is_second_run: bool,
}

/// A candidate that was built.
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
    /// A program for a device, which the runner compiles; or what becomes of one that cannot be sent there.
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

/// What a child works on.
#[derive(Debug)]
pub(super) struct Task<T> {
    /// The number of the request.
    pub(super) request: u64,
    pub(super) what: T,
    pub(super) phase: Phase,
    /// When the phase began.
    pub(super) since: Instant,
    /// How long it may last; building: how much processor time it may take.
    pub(super) limit: Duration,
    /// The next look at the clock, after `since`.
    wait: Duration,
    /// The processor seconds of the child when the phase began, and at the last look.
    used: [f64; 2],
}

impl<T> Task<T> {
    pub(super) fn new(request: u64, what: T) -> Self {
        let (since, limit) = (Instant::now(), Duration::ZERO);
        Self { request, what, phase: Phase::Build, since, limit, wait: limit, used: [0.0; 2] }
    }

    /// Begins a phase, which may last for so long.
    pub(super) fn begin(&mut self, phase: Phase, limit: Duration) {
        (self.phase, self.since) = (phase, Instant::now());
        (self.limit, self.wait) = (limit, limit);
    }
}

/// What a runner works on.
#[derive(Debug)]
pub(super) enum Run {
    /// One candidate.
    Trial(Box<Built>),
    /// Candidates in turns.
    Comparison,
}

/// The place of a child, which one after the other may take.
#[derive(Debug)]
pub(super) struct ChildSlot<T> {
    pub(super) child: Option<Child>,
    /// Until when it has to be ready; `None` once it is.
    pub(super) ready_by: Option<Instant>,
    pub(super) task: Option<Task<T>>,
    /// How many tasks the child has done.
    pub(super) served: u32,
    /// How long they took.
    pub(super) busy: Duration,
    /// How many children in a row did not become ready.
    pub(super) failures: u32,
    /// What the last of them said.
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

    /// Puts a new child in the place.
    pub(super) fn occupy(&mut self, child: Child) {
        self.child = Some(child);
        self.ready_by = Some(Instant::now() + START_DEADLINE);
        self.served = 0;
        self.busy = Duration::ZERO;
    }

    /// Whether the child with this number is here.
    pub(super) fn has(&self, number: u64) -> bool {
        self.child.as_ref().is_some_and(|child| child.number == number)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.child.is_some() && self.ready_by.is_none()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_ready() && self.task.is_none()
    }

    /// Whether no child will come here any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.child.is_none() && self.failures >= MOST_FAILURES
    }

    /// When the child will have taken too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.child.as_ref()?;
        self.ready_by.or_else(|| self.task.as_ref().map(|task| task.since + task.wait))
    }

    /// Gives the child a task, which begins with a phase of at most this length.
    pub(super) fn assign(&mut self, mut task: Task<T>, phase: Phase, limit: Duration) {
        task.begin(phase, limit);
        task.used = [self.processor_seconds(); 2];
        self.task = Some(task);
    }

    /// Whether a build is late only because other processes kept it from the processor; it may then go on
    /// until it has used the time that it was given. A build that makes no progress is late.
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

    /// The processor time that the child has used.
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
