//! Concurrent probes on all threads.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::{Probe, Sample};
use crate::Pool;

/// One probe per worker of a pool, run concurrently: the machine's speed under full load.
#[derive(Debug)]
pub struct ConcurrentProbes<'p, P> {
    probes: Vec<Mutex<P>>,
    pool: &'p Pool,
}

impl<'p, P: Probe + Send> ConcurrentProbes<'p, P> {
    /// Runs probes on the workers of a pool.
    #[must_use]
    pub fn new(probes: Vec<P>, pool: &'p Pool) -> Self {
        Self { probes: probes.into_iter().map(Mutex::new).collect(), pool }
    }
}

impl<P: Probe + Send> Probe for ConcurrentProbes<'_, P> {
    fn name(&self) -> &'static str {
        "all threads together"
    }

    fn run_once(&mut self) -> Sample {
        let work = Mutex::new(0.0);
        let start = Instant::now();
        self.pool.run(self.probes.len() as i64, &|range, _| {
            for number in range {
                let Some(probe) = self.probes.get(number as usize) else { continue };
                let sample = probe.lock().unwrap_or_else(PoisonError::into_inner).run_once();
                *work.lock().unwrap_or_else(PoisonError::into_inner) += sample.work;
            }
        });
        let nanoseconds = (start.elapsed().as_nanos() as f64).max(1.0);
        Sample { nanoseconds, work: work.into_inner().unwrap_or_else(PoisonError::into_inner) }
    }
}
