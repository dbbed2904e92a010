//! The CPU [`Backend`]: machine code in a sandbox.

use std::hint::black_box;

use tensorwright::Program;
use tensorwright_codegen_llvm::Processor;
use tensorwright_codegen_llvm::jit::Jit;
use tensorwright_runtime::probe::Probe;
use tensorwright_runtime::{Machine, Pool};

use super::backend::Backend;
use super::candidate::{Arena, Candidate};
use super::memory::Reused;
use super::{Connection, Served, probes, runner, sandbox, timing};
use crate::protocol::{Description, Setup, Verdict};
use crate::shared::Layout;
use crate::system::AddressSpace;

/// The environment of machine code.
struct Cpu<'p> {
    jit: Jit,
    arena: Arena,
    pool: Option<&'p Pool>,
    probe: Box<dyn Probe + 'p>,
    flush: Reused,
    cache_bytes: usize,
}

/// Runs candidates on this processor until the parent is gone.
pub(super) fn serve(connection: Connection, setup: &Setup, program: &Program) -> Served {
    let layout = Layout::of(program).ok_or("the tensors are too large")?;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let machine = Machine::detect();
    let jit = Processor::native().and_then(|native| Jit::new(&native)).map_err(|e| text(&e))?;
    // The linker queries the system at its first use, which must happen outside the sandbox.
    let _ = jit.load(&[]).map(drop);
    let workers = i32::try_from(setup.threads).unwrap_or(i32::MAX);
    let arena = Arena::new(program, &layout, workers, &connection.shared);
    let arena = arena.map_err(|error| text(&error))?;
    let used = AddressSpace::open().map_err(|error| text(&error))?;
    sandbox::leave_files()?;
    let pool = match setup.threads {
        1 => None,
        threads => Some(Pool::new(threads).map_err(|error| text(&error))?),
    };
    if let Some(Ok(pin)) = pool.as_ref().map(Pool::pin_caller) {
        // Pinned for as long as the process lives.
        std::mem::forget(pin);
    }
    let pool = pool.as_ref();
    let (probe, roofline) =
        probes::nearer(program, pool, setup.roofline).map_err(|error| text(&error))?;
    let cache_bytes = 2 * machine.caches.l3.unwrap_or(machine.caches.l2);
    let flush = Reused::default();
    let cpu = Cpu { jit, arena, pool, probe, flush, cache_bytes };
    sandbox::enter(&used, setup.memory_bytes)?;
    runner::work(connection, cpu, roofline)
}

impl Backend for Cpu<'_> {
    type Candidate = Candidate;

    const COMPILES: bool = false;

    fn load(&mut self, description: &Description, code: &[u8]) -> Result<Candidate, Verdict> {
        Candidate::load(&self.jit, description, code, &mut self.arena)
    }

    fn prepare(&mut self, candidate: &mut Candidate) -> Result<(), Verdict> {
        candidate.prepare(&mut self.arena, self.pool)
    }

    fn poison(&mut self, candidate: &Candidate) -> Result<(), Verdict> {
        self.arena.poison(candidate);
        Ok(())
    }

    fn sample(&mut self, candidate: &mut Candidate, batch: u32) -> Result<f64, Verdict> {
        timing::clocked(batch, &mut || candidate.call(&mut self.arena, self.pool))
    }

    fn confirm(&mut self, candidate: &Candidate) -> Result<(), Verdict> {
        let overrun = self.arena.overrun(candidate);
        let mismatch = overrun.or_else(|| self.arena.mismatch(candidate.error_growth()));
        mismatch.map_or(Ok(()), |reason| Err(Verdict::Wrong(reason)))
    }

    fn rate(&mut self) -> f64 {
        self.probe.run_once().rate()
    }

    fn flush(&mut self) {
        empty_caches(&mut self.flush, self.cache_bytes);
    }
}

/// Flushes the caches by writing a large buffer; does nothing without memory for it.
fn empty_caches(buffer: &mut Reused, bytes: usize) {
    let Ok(region) = buffer.at_least(bytes) else { return };
    let lines = region.bytes_mut().iter_mut().step_by(64);
    lines.for_each(|byte| *byte = byte.wrapping_add(1));
    black_box(region.bytes());
}
