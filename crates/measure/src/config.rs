//! [`Config`]: how candidates are built, run and timed.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tensorwright::Target;

/// The command of a child process: a program whose `main` calls [`serve`](crate::serve) with the
/// arguments after `args`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The executable.
    pub program: PathBuf,
    /// Arguments before those of [`serve`](crate::serve).
    pub args: Vec<String>,
}

impl WorkerCommand {
    /// An executable that takes only the arguments of [`serve`](crate::serve).
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }
}

/// How candidates are built, run and timed.
#[derive(Debug, Clone)]
pub struct Config {
    /// How to start a child process.
    pub worker: WorkerCommand,
    /// How many threads kernels use.
    pub threads: usize,
    /// The target of code generation; this machine must be able to run it.
    pub target: Target,
    /// The seed of the random inputs.
    pub seed: u64,
    /// The deadline for each first process to become ready; that of a device also queries the
    /// device.
    pub start_deadline: Duration,
    /// The CPU time that building a candidate may take, so that a loaded machine makes no build
    /// late.
    pub build_deadline: Duration,
    /// The deadline of the checked call, and again of timing.
    pub run_deadline: Duration,
    /// The deadline for computing the expected results.
    pub expected_deadline: Duration,
    /// The memory that a candidate may use beyond the inputs and outputs.
    pub memory_bytes: u64,
    /// The number of builder processes.
    pub builders: usize,
    /// How candidates are timed.
    pub timing: TimingPlan,
}

impl Config {
    /// One thread, one builder, and deadlines that no sensible candidate meets.
    #[must_use]
    pub fn new(worker: WorkerCommand, target: Target) -> Self {
        Self {
            worker,
            threads: 1,
            target,
            seed: 0,
            start_deadline: Duration::from_secs(60),
            build_deadline: Duration::from_secs(10),
            run_deadline: Duration::from_secs(10),
            expected_deadline: Duration::from_secs(120),
            memory_bytes: 2 << 30,
            builders: 1,
            timing: TimingPlan::default(),
        }
    }
}

/// How candidates are timed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimingPlan {
    /// The minimum total time of the samples.
    pub minimum: Duration,
    /// The time after which sampling stops even with fewer than `least_samples`.
    pub maximum: Duration,
    /// The minimum number of samples, if `maximum` allows it.
    pub least_samples: u32,
    /// The minimum length of a sample: shorter kernels are called several times per sample.
    pub sample: Duration,
    /// Stops timing a candidate whose first warm sample takes this many times the best: it is
    /// certain to lose, and by how much hardly matters.
    pub cut: f64,
    /// The same if both of the first two samples take this many times the best.
    pub glance: f64,
    /// Kills a first call that takes this many times the best (and at least a tenth of a second):
    /// otherwise most of a search's time would go to its worst candidates. (At 1024^3 a third of
    /// all candidates is slower than five times the best, and hardly fewer slower than ten times.)
    pub hopeless: f64,
    /// Whether to flush the caches before every sample.
    pub flush_caches: bool,
    /// The minimum number of rounds to compare finalists in: they detect a gain of 5 %
    /// ([`paired`](tensorwright_runtime::timing::paired)). Half of them suffice if they take four
    /// times the given time.
    pub least_rounds: u32,
}

impl Default for TimingPlan {
    fn default() -> Self {
        Self {
            minimum: Duration::from_millis(12),
            maximum: Duration::from_millis(60),
            least_samples: 3,
            sample: Duration::from_micros(150),
            cut: 3.0,
            glance: 1.5,
            hopeless: 5.0,
            flush_caches: false,
            least_rounds: 24,
        }
    }
}
