//! Probes that alternate with candidates, and the roofline they measure.

use std::time::Duration;

use tensorwright::{DType, Program};
use tensorwright_runtime::probe::{
    ConcurrentProbes, CopyBandwidth, FmaPeak, Probe, ReadBandwidth, sustained,
};
use tensorwright_runtime::{AllocError, Machine, Pool};

use crate::roofline::{Roof, Roofline};

/// The largest buffer of a bandwidth probe: larger than all caches.
const LARGEST: u128 = 256 << 20;

/// How long each roof is probed to find the nearer one.
const GLANCE: Duration = Duration::from_millis(30);

/// A probe of the nearer roof, and the roofline, measured unless it is known.
pub(super) fn nearer<'p>(
    program: &Program,
    pool: Option<&'p Pool>,
    known: Option<Roofline>,
) -> Result<(Box<dyn Probe + 'p>, Roofline), AllocError> {
    if let Some(roofline) = known {
        let probe = match roofline.bound() {
            Roof::Compute => fma(program, pool)?,
            Roof::Memory => memory(program, pool)?,
        };
        return Ok((probe, roofline));
    }
    let (mut fma, mut memory) = (fma(program, pool)?, memory(program, pool)?);
    let (gflops, gbps) = (sustained(fma.as_mut(), GLANCE), sustained(memory.as_mut(), GLANCE));
    let roofline = Roofline::new(program, gflops, gbps);
    match roofline.bound() {
        Roof::Compute => Ok((fma, roofline)),
        Roof::Memory => Ok((memory, roofline)),
    }
}

/// A probe of the FMA peak in the program's precision.
fn fma<'p>(program: &Program, pool: Option<&'p Pool>) -> Result<Box<dyn Probe + 'p>, AllocError> {
    let is_double = program.outputs().iter().any(|tensor| tensor.dtype == DType::Double);
    per_worker(pool, || Ok(if is_double { FmaPeak::f64() } else { FmaPeak::f32() }))
}

/// A probe of the bandwidth to where the data is: of copying if much of the traffic is writes
/// beyond the caches of a core, of reading otherwise. Within those caches `memcpy` is not the
/// fastest way to write, and kernels would exceed its rate.
fn memory<'p>(
    program: &Program,
    pool: Option<&'p Pool>,
) -> Result<Box<dyn Probe + 'p>, AllocError> {
    let written: u128 = program.outputs().iter().map(|out| out.bytes().max(0) as u128).sum();
    let bytes = program.analysis().min_bytes.clamp(1 << 14, LARGEST);
    let share = bytes as usize / pool.map_or(1, Pool::workers);
    if 4 * written >= bytes && share > Machine::detect().caches.l2 {
        // It reads one buffer of this size and writes another.
        per_worker(pool, || CopyBandwidth::new(share / 2))
    } else {
        per_worker(pool, || ReadBandwidth::new(share))
    }
}

fn per_worker<'p, P: Probe + Send + 'p>(
    pool: Option<&'p Pool>,
    one: impl Fn() -> Result<P, AllocError>,
) -> Result<Box<dyn Probe + 'p>, AllocError> {
    let Some(pool) = pool else { return Ok(Box::new(one()?)) };
    let probes = (0..pool.workers()).map(|_| one()).collect::<Result<_, _>>()?;
    Ok(Box::new(ConcurrentProbes::new(probes, pool)))
}
