//! [`Goal`]: what a schedule is made for.

use tensorwright_lang::precision::Precision;

use crate::{Cpu, Target};

/// What a schedule is made for: a target, and what somebody wishes of it. Whoever asks for schedules has a
/// goal of any target; policy for one kind of target has a goal of that kind, such as `Goal<Cpu>`.
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
    /// What code is generated for.
    pub target: T,
    /// The number of workers that run parallel loops.
    pub workers: i64,
    /// With which numbers sums may be computed.
    pub precision: Precision,
}

impl<T> Goal<T> {
    /// One worker and exact sums.
    #[must_use]
    pub fn new(target: T) -> Self {
        Self { target, workers: 1, precision: Precision::Exact }
    }

    /// With a number of workers.
    #[must_use]
    pub fn with_workers(self, workers: i64) -> Self {
        Self { workers, ..self }
    }

    /// With as many workers as there are threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        self.with_workers(i64::try_from(threads).unwrap_or(i64::MAX))
    }

    /// The workers, as a number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        usize::try_from(self.workers).unwrap_or(1).max(1)
    }

    /// With another precision.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The same wishes for another target.
    #[must_use]
    pub fn for_target<U>(&self, target: U) -> Goal<U> {
        Goal { target, workers: self.workers, precision: self.precision }
    }
}

impl Goal {
    /// With what this machine has: its caches if it runs code for the processor, typical ones otherwise.
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
