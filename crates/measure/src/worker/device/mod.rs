//! The device [`Backend`]: programs that its runtime compiles in this process.
#![allow(unsafe_code, reason = "runs kernels that nothing is known of")]

mod memory;
mod verdict;

use std::fs::File;

use tensorwright::Program;
use tensorwright::ir::TensorId;
use tensorwright_device::{
    Device, DeviceError, DeviceProgram, Kernel, Memory, Probe, ProbeKind, open,
};
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::Owner;

use self::verdict::verdict;
use super::backend::Backend;
use super::compare::{self, Tensor};
use super::{Connection, Served, runner, sandbox};
use crate::protocol::{Description, Setup, Verdict};
use crate::roofline::{Roof, Roofline};
use crate::shared::Layout;

/// The memory that a runtime may use to compile, however little a candidate may.
const LEAST_MEMORY: u64 = 2 << 30;

/// The environment of a device program.
struct DeviceBackend {
    device: Box<dyn Device>,
    probe: Probe,
    inputs: Vec<Memory>,
    outputs: Vec<Memory>,
    expected: Vec<Tensor>,
    /// The outputs of the program, in order.
    output_ids: Vec<TensorId>,
    /// Host memory for comparing results.
    scratch: Vec<u8>,
    /// Memory to flush the caches with.
    flush: Option<Memory>,
}

/// A program on the device.
struct Candidate {
    kernel: Kernel,
    /// The memory of each input and output of the interface.
    slots: Vec<Slot>,
    error_growth: f64,
}

/// The memory of a tensor.
#[derive(Clone, Copy)]
enum Slot {
    Input(usize),
    Output(usize),
}

/// Runs candidates on a device until the parent is gone.
pub(super) fn serve(
    connection: Connection,
    setup: &Setup,
    program: &Program,
    name: &str,
) -> Served {
    let layout = Layout::of(program).ok_or("the tensors are too large")?;
    let mut device = open(name).map_err(|error| format!("{error}; {}", error.help()))?;
    let (probe, roofline) = nearer(device.as_mut(), program, setup.roofline)
        .map_err(|error| format!("{error}; {}", error.help()))?;
    let backend = DeviceBackend::new(device, probe, program, &layout, &connection.shared)?;
    let shares_memory = backend.device.describe().shares_memory;
    sandbox::limit_device(shares_memory, setup.memory_bytes.max(LEAST_MEMORY))?;
    runner::work(connection, backend, roofline)
}

/// A probe of the nearer roof, and the roofline, measured unless it is known.
fn nearer(
    device: &mut dyn Device,
    program: &Program,
    known: Option<Roofline>,
) -> Result<(Probe, Roofline), DeviceError> {
    /// Runs of each probe to find the nearer roof; the first may be a cold one.
    const RUNS: usize = 4;
    let kind = |roofline: &Roofline| match roofline.bound() {
        Roof::Compute => ProbeKind::Arithmetic,
        Roof::Memory => ProbeKind::Bandwidth,
    };
    if let Some(roofline) = known {
        return Ok((Probe::new(device, kind(&roofline))?, roofline));
    }
    let arithmetic = Probe::new(device, ProbeKind::Arithmetic)?;
    let bandwidth = Probe::new(device, ProbeKind::Bandwidth)?;
    let mut best = |probe: &Probe| {
        let rates = (0..RUNS).map(|_| probe.run_once(device)).collect::<Result<Vec<_>, _>>();
        rates.map(|rates| rates.into_iter().fold(0.0, f64::max) * 1e-9)
    };
    let roofline = Roofline::new(program, best(&arithmetic)?, best(&bandwidth)?);
    match roofline.bound() {
        Roof::Compute => Ok((arithmetic, roofline)),
        Roof::Memory => Ok((bandwidth, roofline)),
    }
}

impl DeviceBackend {
    /// Reads inputs and expected results of a program from the shared file.
    fn new(
        mut device: Box<dyn Device>,
        probe: Probe,
        program: &Program,
        layout: &Layout,
        shared: &File,
    ) -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| format!("no memory for the tensors: {error}");
        let inputs = layout.inputs.iter().map(|part| {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(part.bytes).map_err(|error| text(&error))?;
            bytes.resize(part.bytes, 0);
            part.read(shared, &mut bytes).map_err(|error| text(&error))?;
            memory::constant(device.as_mut(), &bytes).map_err(|error| text(&error))
        });
        let inputs = inputs.collect::<Result<_, _>>()?;
        let outputs = layout.outputs.iter().map(|(values, _)| {
            memory::guarded(device.as_mut(), values.bytes as u64).map_err(|error| text(&error))
        });
        let outputs = outputs.collect::<Result<_, _>>()?;
        let expected = Tensor::outputs(layout, shared).map_err(|error| text(&error))?;
        let (output_ids, scratch) = (program.ir().outputs.clone(), Vec::new());
        Ok(Self { device, probe, inputs, outputs, expected, output_ids, scratch, flush: None })
    }

    /// The memory of an input or output.
    fn slot(&self, parameter: &Parameter) -> Option<Slot> {
        match parameter.owner {
            Owner::Input => {
                Some(parameter.id.0 as usize).filter(|n| *n < self.inputs.len()).map(Slot::Input)
            }
            Owner::Output => {
                self.output_ids.iter().position(|id| *id == parameter.id).map(Slot::Output)
            }
            _ => None,
        }
    }

    /// Calls a function of a candidate; returns the seconds by the device's clock.
    fn call(&mut self, candidate: &Candidate, function: Function) -> Result<f64, Verdict> {
        let memory = |slot: &Slot| match *slot {
            Slot::Input(place) => &self.inputs[place],
            Slot::Output(place) => &self.outputs[place],
        };
        let tensors: Vec<&Memory> = candidate.slots.iter().map(memory).collect();
        // SAFETY: the kernels are unknown code. This process exists to find out whether they keep
        // to their interface, and they can harm only it.
        let called = unsafe { candidate.kernel.call(self.device.as_mut(), function, &tensors) };
        called.map(|elapsed| elapsed.total.as_secs_f64()).map_err(|error| verdict(&error))
    }

    /// The buffer that a candidate has overrun, or how its outputs differ from the expected values.
    fn problem(&mut self, candidate: &Candidate) -> Result<Option<String>, Verdict> {
        let Self { device, outputs, expected, scratch, .. } = self;
        for (place, (output, expected)) in outputs.iter().zip(expected).enumerate() {
            scratch.resize(output.bytes() as usize, 0);
            device.download(output, 0, scratch).map_err(|error| verdict(&error))?;
            let (values, rest) = scratch.split_at(expected.values.bytes().len());
            if !memory::is_unwritten(rest) {
                let reason = format!("the kernel writes past the end of output {place}");
                return Ok(Some(reason));
            }
            if let Some(difference) = compare::difference(expected, values, candidate.error_growth)
            {
                return Ok(Some(format!("output {place}: {difference}")));
            }
        }
        for (name, bytes, own) in candidate.kernel.memory() {
            scratch.resize(own.bytes().saturating_sub(bytes) as usize, 0);
            device.download(own, bytes, scratch).map_err(|error| verdict(&error))?;
            if !memory::is_unwritten(scratch) {
                return Ok(Some(format!("the kernel writes past the end of its {name}")));
            }
        }
        Ok(None)
    }
}

impl Backend for DeviceBackend {
    type Candidate = Candidate;

    const COMPILES: bool = true;

    fn load(&mut self, description: &Description, code: &[u8]) -> Result<Candidate, Verdict> {
        let unlinkable = |error: &dyn std::fmt::Display| Verdict::Unlinkable(error.to_string());
        let program: DeviceProgram = serde_json::from_slice(code).map_err(|e| unlinkable(&e))?;
        let explicit = program.interface.parameters.iter().filter(|p| p.is_explicit());
        let slots = explicit.map(|parameter| self.slot(parameter)).collect::<Option<_>>();
        let unknown = "the program takes tensors that the source text does not have";
        let slots = slots.ok_or_else(|| unlinkable(&unknown))?;
        let kernel = Kernel::load_with(self.device.as_mut(), &program, &mut memory::guarded);
        let kernel = kernel.map_err(|error| verdict(&error))?;
        Ok(Candidate { kernel, slots, error_growth: description.error_growth.max(1.0) })
    }

    fn prepare(&mut self, candidate: &mut Candidate) -> Result<(), Verdict> {
        match candidate.kernel.program().interface.has_prepare {
            true => self.call(candidate, Function::Prepare).map(drop),
            false => Ok(()),
        }
    }

    fn poison(&mut self, candidate: &Candidate) -> Result<(), Verdict> {
        let Self { device, outputs, expected, scratch, .. } = self;
        for (output, expected) in outputs.iter().zip(expected) {
            scratch.clear();
            scratch.extend(expected.values.bytes().iter().map(|byte| !byte));
            memory::fill(device.as_mut(), output, scratch).map_err(|error| verdict(&error))?;
        }
        let workspace = candidate.kernel.workspace();
        memory::fill(device.as_mut(), workspace, &[]).map_err(|error| verdict(&error))
    }

    fn sample(&mut self, candidate: &mut Candidate, batch: u32) -> Result<f64, Verdict> {
        let mut seconds = 0.0;
        for _ in 0..batch {
            seconds += self.call(candidate, Function::Compute)?;
        }
        Ok(f64::max(seconds, 1e-9) / f64::from(batch.max(1)))
    }

    fn confirm(&mut self, candidate: &Candidate) -> Result<(), Verdict> {
        self.problem(candidate)?.map_or(Ok(()), |reason| Err(Verdict::Wrong(reason)))
    }

    fn rate(&mut self) -> f64 {
        // Without a rate, times are not corrected.
        self.probe.run_once(self.device.as_mut()).map_or(f64::NAN, |rate| rate * 1e-9)
    }

    fn flush(&mut self) {
        let bytes = self.device.describe().gpu.l2.unsigned_abs().saturating_mul(2);
        if self.flush.is_none() {
            self.flush = self.device.allocate(bytes).ok();
        }
        if let Some(memory) = &self.flush {
            // Without memory for it, the caches stay as they are.
            let _ = memory::fill(self.device.as_mut(), memory, &[]);
        }
    }
}
