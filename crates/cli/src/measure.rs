//! Kernel timing and the share of the machine's roofline.
//!
//! The roofline selects the roof: the FMA peak, or the bandwidth of moving every element once
//! through a buffer as large as the kernel's data (so that data in a cache is compared with that
//! cache). The nearer roof is then measured in turns with the kernel.

mod device;

use std::time::Duration;

use serde::Serialize;
use tensorwright::runtime::affinity::{self, Pin};
use tensorwright::runtime::probe::{
    ConcurrentProbes, CopyBandwidth, FmaPeak, Probe, ReadBandwidth, sustained,
};
use tensorwright::runtime::timing::{self, TimingOptions};
use tensorwright::runtime::{AllocError, Machine, Pool};
use tensorwright::{Call, Code, DType, Diagnostic, Diagnostics, Kernel, Program, Source};
use tensorwright_measure::Roof;

/// The largest buffer of a bandwidth probe: beyond all caches.
const LARGEST: u128 = 256 << 20;

/// How long each roof is measured before one is selected.
const GLANCE: Duration = Duration::from_millis(30);

/// The timing of a kernel.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measurement {
    pub(crate) median_ns: f64,
    pub(crate) min_ns: f64,
    /// The interquartile range divided by the median.
    pub(crate) spread: f64,
    pub(crate) samples: usize,
    pub(crate) gflops: f64,
    pub(crate) gbps: f64,
    pub(crate) share_of_peak: Option<f64>,
    pub(crate) bound: Roof,
    pub(crate) peak_gflops: f64,
    pub(crate) peak_gbps: f64,
    /// The kind of bandwidth in `peak_gbps`.
    pub(crate) bandwidth: &'static str,
}

/// Times a call.
pub(crate) fn measure(kernel: &Kernel, call: &mut Call<'_>) -> Result<Measurement, Diagnostics> {
    if kernel.device_program().is_some() {
        return device::measure(kernel, call);
    }
    let _pin = pin(kernel.pool());
    let program = kernel.program();
    let analysis = program.analysis();
    let (flops, bytes) = (analysis.flops as f64, analysis.min_bytes as f64);
    let mut fma = fma_probe(kernel);
    let (mut memory, bandwidth) = memory_probe(kernel, analysis.min_bytes)?;
    let mut peak_gflops = sustained(fma.as_mut(), GLANCE);
    let mut peak_gbps = sustained(memory.as_mut(), GLANCE);
    let (bound, work, probe) = if flops / peak_gflops >= bytes / peak_gbps {
        (Roof::Compute, flops, fma.as_mut())
    } else {
        (Roof::Memory, bytes, memory.as_mut())
    };
    let options = TimingOptions { work: Some(work), ..TimingOptions::default() };
    // The call has succeeded on the same data before.
    let timing = timing::measure(&mut || drop(call.run()), Some(probe), &options);
    if let Some(probe) = timing.probe {
        match bound {
            Roof::Compute => peak_gflops = probe.rate,
            Roof::Memory => peak_gbps = probe.rate,
        }
    }
    Ok(Measurement {
        median_ns: timing.median_ns,
        min_ns: timing.min_ns,
        spread: timing.spread,
        samples: timing.samples.len(),
        gflops: flops / timing.median_ns,
        gbps: bytes / timing.median_ns,
        share_of_peak: timing.share_of_probe(),
        bound,
        peak_gflops,
        peak_gbps,
        bandwidth,
    })
}

/// A probe of the FMA peak in the kernel's precision, on its threads.
fn fma_probe(kernel: &Kernel) -> Box<dyn Probe + '_> {
    let is_double = kernel.program().outputs().iter().any(|tensor| tensor.dtype == DType::Double);
    let one = || if is_double { FmaPeak::f64() } else { FmaPeak::f32() };
    match kernel.pool() {
        None => Box::new(one()),
        Some(pool) => {
            Box::new(ConcurrentProbes::new((0..pool.workers()).map(|_| one()).collect(), pool))
        }
    }
}

/// A probe of the bandwidth to the kernel's data, on its threads: copying if the kernel writes a
/// good part of its traffic, reading otherwise. In a core's caches always reading: `memcpy` is not
/// the fastest way to write there, and a kernel must not exceed its roof.
fn memory_probe(
    kernel: &Kernel,
    bytes: u128,
) -> Result<(Box<dyn Probe + '_>, &'static str), Diagnostics> {
    let written = written_bytes(kernel.program());
    let bytes = bytes.clamp(1 << 14, LARGEST) as usize;
    let share = bytes / kernel.threads().max(1);
    let copies = 4 * written >= bytes as u128 && share > Machine::detect().caches.l2;
    let name = if copies { "copy" } else { "read" };
    let probe = if copies {
        // A copy reads one buffer of this size and writes another.
        workers(kernel, || CopyBandwidth::new(share / 2))
    } else {
        workers(kernel, || ReadBandwidth::new(share))
    };
    Ok((probe.map_err(problem)?, name))
}

fn written_bytes(program: &Program) -> u128 {
    program.outputs().iter().map(|tensor| tensor.bytes().max(0) as u128).sum()
}

/// One probe per thread of a kernel.
fn workers<'k, P: Probe + Send + 'k>(
    kernel: &'k Kernel,
    one: impl Fn() -> Result<P, AllocError>,
) -> Result<Box<dyn Probe + 'k>, AllocError> {
    Ok(match kernel.pool() {
        None => Box::new(one()?),
        Some(pool) => {
            let probes = (0..pool.workers()).map(|_| one()).collect::<Result<_, _>>()?;
            Box::new(ConcurrentProbes::new(probes, pool))
        }
    })
}

/// Pins the calling thread to one processor, where the system allows it.
pub(crate) fn pin(pool: Option<&Pool>) -> Option<Pin> {
    match pool {
        Some(pool) => pool.pin_caller().ok(),
        None => affinity::pin(affinity::current()?).ok(),
    }
}

/// The diagnostic for a machine error.
pub(crate) fn problem(error: impl std::error::Error) -> Diagnostics {
    let diagnostic = Diagnostic::without_place(Code::TooLarge, error.to_string())
        .help("use smaller sizes or fewer threads");
    Diagnostics::new(Source::new("this machine", ""), vec![diagnostic])
}
