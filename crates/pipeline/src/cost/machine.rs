//! [`Machine`]: the machine parameters of the analytical model.

use tensorwright_machine::{Cpu, Goal};

/// Machine parameters in cycles and bytes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Machine {
    /// The bytes of a vector.
    pub vector_bytes: f64,
    /// The number of workers.
    pub workers: f64,
    /// Arithmetic instructions per cycle.
    pub arithmetic: f64,
    /// Loads per cycle.
    pub loads: f64,
    /// The size of the L1 cache in bytes.
    pub l1: f64,
    /// The size of the L2 cache in bytes.
    pub l2: f64,
    /// Bytes per cycle between the L1 and L2 caches.
    pub l2_bytes: f64,
    /// Bytes per cycle of memory bandwidth for one worker.
    pub memory_bytes: f64,
    /// Cycles to start the workers and wait for them.
    pub launch: f64,
    /// Cycles to start the loops of a stage.
    pub start: f64,
    /// Cycles to start a row.
    pub row: f64,
}

impl Machine {
    /// Typical values for a CPU.
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
