//! [`Goal`]: the target and options of a schedule.

use tensorwright_lang::precision::Precision;

use crate::{Cpu, Target};

/// The input of scheduling policy: a target, the number of workers and the precision. General code
/// uses a goal with any target; policy for one kind of target uses a goal of that kind, such as
/// `Goal<Cpu>`.
///
/// ```
/// use tensorwright_machine::{Cpu, Goal, Target};
///
/// let goal = Goal::new(Target::named("avx2")?).with_workers(2);
/// assert_eq!(goal, Goal::new(Cpu::avx2()).with_workers(2).into());
/// # Ok::<(), tensorwright_machine::TargetError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal<T = Target> {
    /// The target.
    pub target: T,
    /// The number of workers that run parallel loops.
    pub workers: i64,
    /// The precision of sums.
    pub precision: Precision,
}

impl<T> Goal<T> {
    /// One worker and exact sums.
    #[must_use]
    pub fn new(target: T) -> Self {
        Self { target, workers: 1, precision: Precision::Exact }
    }

    /// Sets the number of workers.
    #[must_use]
    pub fn with_workers(self, workers: i64) -> Self {
        Self { workers, ..self }
    }

    /// Sets the number of workers to a number of threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        self.with_workers(i64::try_from(threads).unwrap_or(i64::MAX))
    }

    /// The number of workers, as a number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        usize::try_from(self.workers).unwrap_or(1).max(1)
    }

    /// Sets the precision.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The same goal for another target.
    #[must_use]
    pub fn for_target<U>(&self, target: U) -> Goal<U> {
        Goal { target, workers: self.workers, precision: self.precision }
    }
}

impl Goal {
    /// Uses this machine's properties: its caches if it can run the code, typical ones otherwise.
    #[must_use]
    pub fn on_this_machine(self) -> Self {
        Self { target: self.target.on_this_machine(), ..self }
    }
}

impl From<Goal<Cpu>> for Goal {
    fn from(Goal { target, workers, precision }: Goal<Cpu>) -> Self {
        Self { target: Target::Cpu(target), workers, precision }
    }
}
