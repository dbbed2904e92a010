//! [`Machine`]: the numbers about a processor that the analytical model needs.

use tensorwright_machine::{Cpu, Goal};

/// Numbers about a processor, in cycles and bytes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Machine {
    /// Bytes of a vector.
    pub vector_bytes: f64,
    /// Workers.
    pub workers: f64,
    /// Arithmetic instructions that start in a cycle.
    pub arithmetic: f64,
    /// Loads that start in a cycle.
    pub loads: f64,
    /// Bytes of the first-level cache.
    pub l1: f64,
    /// Bytes of the second-level cache.
    pub l2: f64,
    /// Bytes per cycle between the first and the second level.
    pub l2_bytes: f64,
    /// Bytes per cycle that a worker gets from memory.
    pub memory_bytes: f64,
    /// Cycles to start the workers and to wait for them.
    pub launch: f64,
    /// Cycles to start the loops of a stage.
    pub start: f64,
    /// Cycles to start a row.
    pub row: f64,
}

impl Machine {
    /// What is typical of a processor.
    #[must_use]
    pub fn of(goal: &Goal<Cpu>) -> Self {
        let caches = goal.target.caches();
        Self {
            vector_bytes: goal.target.vector_bytes() as f64,
            workers: goal.workers.max(1) as f64,
            arithmetic: 2.0,
            loads: 2.0,
            l1: caches.l1 as f64,
            l2: caches.l2 as f64,
            l2_bytes: 32.0,
            memory_bytes: 4.0,
            launch: 15_000.0,
            start: 40.0,
            row: 12.0,
        }
    }
}
