//! `tensorwright machine`

mod devices;

use std::io::Write;
use std::time::Duration;

use serde::Serialize;
use tensorwright::runtime::machine::Caches;
use tensorwright::runtime::probe::{
    ConcurrentProbes, CopyBandwidth, FmaPeak, Probe, ReadBandwidth, sustained,
};
use tensorwright::runtime::{Machine, Pool};
use tensorwright::{Diagnostics, Processor};

use crate::args::{Format, MachineArgs};
use crate::failure::{InFormat, Outcome};
use crate::measure::{pin, problem};
use crate::report;

/// How long each probe runs.
const DURATION: Duration = Duration::from_millis(100);

/// The results of the probes.
#[derive(Debug, Serialize)]
struct Measured {
    threads: usize,
    fma_f32_gflops: f64,
    fma_f64_gflops: f64,
    fma_f32_gflops_all_threads: f64,
    read_gbps: f64,
    copy_gbps: f64,
}

/// Describes the machine.
pub(crate) fn run(args: &MachineArgs) -> Outcome {
    let format = args.output.format;
    let machine = Machine::detect();
    let measured = measure(&machine).in_format(format)?;
    let target = Processor::native().map(|target| target.to_string()).unwrap_or_default();
    match format {
        Format::Json => {
            let listings = tensorwright_device::devices();
            let Caches { line, l1d, l2, l3, .. } = machine.caches;
            report::json(&serde_json::json!({
                "model": machine.model,
                "architecture": machine.architecture,
                "target": target,
                "features": machine.features,
                "physical_cores": machine.physical_cores,
                "logical_processors": machine.logical_processors,
                "allowed_processors": machine.allowed_processors,
                "caches": { "line": line, "l1d": l1d, "l2": l2, "l3": l3 },
                "memory_bytes": machine.memory_bytes,
                "measured": measured,
                "devices": devices::json(&listings),
                "missing_runtimes": devices::missing(&listings),
            }))?;
        }
        Format::Text => {
            let mut out = crate::terminal::out();
            writeln!(out, "{machine}")?;
            writeln!(out, "target     {target}")?;
            writeln!(
                out,
                "FMA peak   {:.1} GFLOP/s float, {:.1} double, one thread; {:.1} float, {} threads",
                measured.fma_f32_gflops,
                measured.fma_f64_gflops,
                measured.fma_f32_gflops_all_threads,
                measured.threads
            )?;
            writeln!(
                out,
                "bandwidth  {:.1} GB/s read, {:.1} GB/s copy (read and written), one thread",
                measured.read_gbps, measured.copy_gbps
            )?;
            // Vendor runtimes come last: a crash in one loses no other output.
            out.flush()?;
            devices::write(&mut out, &tensorwright_device::devices())?;
        }
    }
    Ok(())
}

fn measure(machine: &Machine) -> Result<Measured, Diagnostics> {
    let pool = Pool::new(machine.allowed_processors.len().max(1)).map_err(problem)?;
    let _pin = pin(Some(&pool));
    let mut read = ReadBandwidth::new(beyond_caches(machine)).map_err(problem)?;
    let read_gbps = sustained(&mut read, DURATION);
    drop(read);
    let mut copy = CopyBandwidth::new(beyond_caches(machine)).map_err(problem)?;
    let copy_gbps = sustained(&mut copy, DURATION);
    let peaks: Vec<FmaPeak> = (0..pool.workers()).map(|_| FmaPeak::f32()).collect();
    let mut together = ConcurrentProbes::new(peaks, &pool);
    Ok(Measured {
        threads: pool.workers(),
        fma_f32_gflops: sustained(&mut FmaPeak::f32() as &mut dyn Probe, DURATION),
        fma_f64_gflops: sustained(&mut FmaPeak::f64(), DURATION),
        fma_f32_gflops_all_threads: sustained(&mut together, DURATION),
        read_gbps,
        copy_gbps,
    })
}

/// A size larger than all caches that every machine can spare.
fn beyond_caches(machine: &Machine) -> usize {
    let largest = machine.caches.l3.unwrap_or(machine.caches.l2);
    largest.saturating_mul(4).clamp(64 << 20, 256 << 20)
}
