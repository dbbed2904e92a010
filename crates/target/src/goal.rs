//! [`Goal`]: what a schedule is made for.

use tensorwright_lang::precision::Precision;

use crate::{Cpu, Target, TargetError};

/// What a schedule is made for: a target, and what somebody wishes of it. Policy for one kind of target
/// takes a goal of that kind, such as `Goal<Cpu>`.
///
/// ```
/// use tensorwright_target::{Goal, Target};
///
/// let goal = Goal::new(Target::named("avx2")?).with_workers(2);
/// let cpu = goal.cpu().ok_or("no processor")?;
/// assert_eq!((cpu.target.lanes(4), cpu.workers), (8, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
}

impl Goal {
    /// What schedules of a processor that code is compiled for now are made for: with this machine's
    /// caches if it runs the code, and typical ones otherwise.
    ///
    /// # Errors
    /// A target that is no processor: there is no policy for it yet.
    pub fn on_cpu(&self) -> Result<Goal<Cpu>, TargetError> {
        let Some(cpu) = self.target.cpu() else {
            return Err(TargetError::Unavailable { name: self.target.name().to_owned() });
        };
        let Self { workers, precision, .. } = *self;
        Ok(Goal { target: cpu.clone().on_this_machine(), workers, precision })
    }

    /// The same for a processor, if the target is one.
    #[must_use]
    pub fn cpu(&self) -> Option<Goal<Cpu>> {
        let Self { workers, precision, .. } = *self;
        Some(Goal { target: self.target.cpu()?.clone(), workers, precision })
    }
}

impl From<Goal<Cpu>> for Goal {
    fn from(Goal { target, workers, precision }: Goal<Cpu>) -> Self {
        Self { target: Target::Cpu(target), workers, precision }
    }
}
