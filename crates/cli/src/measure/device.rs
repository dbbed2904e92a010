//! Kernel timing on a device, by the device's clock, without transfers.

use std::time::{Duration, Instant};

use tensorwright::runtime::timing::stats::median_and_spread;
use tensorwright::{Call, Code, Diagnostic, Diagnostics, Kernel};
use tensorwright_device::{Device, DeviceError, Probe, ProbeKind, shared};
use tensorwright_measure::Roof;

use super::Measurement;

/// The time for repeated calls.
const BUDGET: Duration = Duration::from_millis(500);

/// The most calls.
const MOST: usize = 200;

/// The fewest calls.
const FEWEST: usize = 3;

/// Times a call in turns with a probe of the nearer roof.
pub(super) fn measure(kernel: &Kernel, call: &mut Call<'_>) -> Result<Measurement, Diagnostics> {
    let refused = |error: DeviceError| {
        let diagnostic = Diagnostic::without_place(Code::KernelFailed, error.to_string());
        let source = kernel.program().ir().source.clone();
        Diagnostics::new(source, vec![diagnostic.help(error.help())])
    };
    let device = shared(kernel.lowered().target().name()).map_err(refused)?;
    let run = |probe: &Probe| probe.run_once(locked(&device).as_mut()).map(|rate| rate * 1e-9);
    let make = |kind| -> Result<(Probe, f64), DeviceError> {
        let probe = Probe::new(locked(&device).as_mut(), kind)?;
        // The first run may be cold.
        run(&probe)?;
        let rate = run(&probe)?;
        Ok((probe, rate))
    };
    let analysis = kernel.program().analysis();
    let (flops, bytes) = (analysis.flops as f64, analysis.min_bytes as f64);
    let (arithmetic, mut peak_gflops) = make(ProbeKind::Arithmetic).map_err(refused)?;
    let (bandwidth, mut peak_gbps) = make(ProbeKind::Bandwidth).map_err(refused)?;
    let (bound, probe, peak) = match flops / peak_gflops >= bytes / peak_gbps {
        true => (Roof::Compute, &arithmetic, &mut peak_gflops),
        false => (Roof::Memory, &bandwidth, &mut peak_gbps),
    };
    let (start, mut samples) = (Instant::now(), Vec::new());
    while samples.len() < FEWEST || start.elapsed() < BUDGET && samples.len() < MOST {
        call.run()?;
        samples.extend(call.device_time().map(|time| time.as_nanos().max(1) as f64));
        *peak = peak.max(run(probe).map_err(refused)?);
    }
    let (median_ns, spread) = median_and_spread(&samples);
    let (gflops, gbps) = (flops / median_ns, bytes / median_ns);
    let share = match bound {
        Roof::Compute => gflops / peak_gflops,
        Roof::Memory => gbps / peak_gbps,
    };
    Ok(Measurement {
        median_ns,
        min_ns: samples.iter().copied().fold(f64::INFINITY, f64::min),
        spread,
        samples: samples.len(),
        gflops,
        gbps,
        share_of_peak: Some(share),
        bound,
        peak_gflops,
        peak_gbps,
        bandwidth: "copy",
    })
}

/// The device. A panic elsewhere leaves it usable.
fn locked(
    device: &tensorwright_device::SharedDevice,
) -> std::sync::MutexGuard<'_, Box<dyn Device>> {
    device.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
