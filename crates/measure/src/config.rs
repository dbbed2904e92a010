//! [`Config`]: how candidates are built, run and timed.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tensorwright::Target;

/// How to start a child process: a program whose `main` calls [`serve`](crate::serve) with the
/// arguments that follow `args`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The executable.
    pub program: PathBuf,
    /// Arguments that come before those of [`serve`](crate::serve).
    pub args: Vec<String>,
}

impl WorkerCommand {
    /// An executable that takes the arguments of [`serve`](crate::serve) and no others.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new() }
    }

    /// With one more argument.
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
    /// The processor that code is generated for; this machine must be able to run it.
    pub target: Target,
    /// The seed of the random inputs.
    pub seed: u64,
    /// How long each of the first processes may take until it is ready; that of a device asks what the device can do.
    pub start_deadline: Duration,
    /// How much processor time building a candidate may take: a loaded machine makes no build late.
    pub build_deadline: Duration,
    /// How long the checked call may take, and timing again as long.
    pub run_deadline: Duration,
    /// How long computing the expected results may take.
    pub expected_deadline: Duration,
    /// How much memory a candidate may use beyond the inputs and outputs.
    pub memory_bytes: u64,
    /// How many processes build.
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
    /// For how long to take samples, at least.
    pub minimum: Duration,
    /// When to stop although there are fewer than `least_samples`.
    pub maximum: Duration,
    /// How many samples to take, at least, if `maximum` allows.
    pub least_samples: u32,
    /// How long a sample should be, at least: shorter kernels are called several times per sample.
    pub sample: Duration,
    /// A candidate whose first sample of warm calls takes so many times the best is not timed further: that
    /// it loses is certain, by how much matters little.
    pub cut: f64,
    /// The same for a candidate whose first two samples both take so many times the best.
    pub glance: f64,
    /// A first call that takes so many times the best (and at least a tenth of a second) is ended by
    /// force: most of the time of a search would otherwise go to its worst candidates. (At 1024^3 a third
    /// of all candidates is slower than five times the best, and hardly fewer slower than ten times.)
    pub hopeless: f64,
    /// Whether the caches are emptied before every sample.
    pub flush_caches: bool,
    /// How many rounds finalists are compared in, at least: a gain of 5 % is found in as many
    /// ([`paired`](tensorwright_runtime::timing::paired)). Half of them suffice if they take four times the
    /// time that was given.
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
