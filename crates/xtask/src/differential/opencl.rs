#![allow(unsafe_code, reason = "launches generated kernels")]
//! Runs pairs as OpenCL C on a device, in this process.

use std::cell::RefCell;
use std::time::Duration;

use tensorwright_codegen_c::{Dialect, emit_device};
use tensorwright_device::{
    Arguments, Device, DeviceError, GuardedMemory, Memory, STATUS_BYTES, open, set_deadline,
};
use tensorwright_schedule::interface::Function;
use tensorwright_schedule::nest::Owner;

use super::failure::{Kind, Problem, Suspect};
use super::pair::Pair;

/// Effectively none: the parent detects hangs by CPU time.
const DEADLINE: Duration = Duration::from_secs(1 << 20);

/// An OpenCL device.
pub(crate) struct OpenCl {
    device: RefCell<Box<dyn Device>>,
}

impl OpenCl {
    /// Opens a device.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        set_deadline(DEADLINE);
        let device = open(name).map_err(|error| format!("{error}; {}", error.help()))?;
        Ok(Self { device: RefCell::new(device) })
    }

    /// Compiles, runs and compares a pair lowered for a device. Skips pairs that were not lowered
    /// or exceed the device's limits.
    pub(crate) fn check(&self, pair: &Pair) -> Result<(), Problem> {
        let problem = |kind, message: String| Problem::new(Suspect::OpenCl, kind, message);
        let mut device = self.device.borrow_mut();
        match run(device.as_mut(), pair) {
            Ok(judged) => judged.map_err(|(kind, message)| problem(kind, message)),
            Err(DeviceError::Limit { .. } | DeviceError::OutOfMemory { .. }) => Ok(()),
            Err(error) => Err(problem(Kind::Compile, error.to_string())),
        }
    }
}

/// Guarded memory with given bytes, or garbage.
fn memory(
    device: &mut dyn Device,
    bytes: u64,
    contents: Option<&[u8]>,
    garbage: u8,
) -> Result<GuardedMemory, DeviceError> {
    let memory = GuardedMemory::allocate(device, bytes.max(1))?;
    match contents {
        Some(contents) => device.upload(memory.memory(), 0, contents)?,
        None => device.upload(memory.memory(), 0, &vec![garbage; bytes as usize])?,
    }
    Ok(memory)
}

/// Runs a pair on a device.
fn run(device: &mut dyn Device, pair: &Pair) -> Result<Result<(), (Kind, String)>, DeviceError> {
    let Some(nest) = &pair.device else { return Ok(Ok(())) };
    let program = match emit_device(nest, Dialect::OpenCl) {
        Ok(program) => program,
        Err(error) => return Ok(Err((Kind::Compile, error.to_string()))),
    };
    let loaded = device.load(&program)?;
    let parameters = &program.interface.parameters;
    let mut tensors = Vec::new();
    for (parameter, contents) in parameters.iter().zip(pair.contents()) {
        let bytes = parameter.bytes().unsigned_abs();
        tensors.push(memory(device, bytes, contents, pair.garbage)?);
    }
    let workspace = memory(device, program.workspace_bytes, None, pair.garbage)?;
    let status = device.allocate(STATUS_BYTES)?;
    device.upload(&status, 0, &[0; STATUS_BYTES as usize])?;
    let all: Vec<&Memory> = tensors.iter().map(GuardedMemory::memory).collect();
    let workspace_memory = workspace.memory();
    let arguments = Arguments { parameters: &all, workspace: workspace_memory, status: &status };
    for function in [Function::Prepare, Function::Compute] {
        if function == Function::Compute || program.interface.has_prepare {
            // SAFETY: memory is as large as the interface says. A kernel that does not keep to it is what we look for.
            unsafe { device.launch(&loaded, function, &arguments) }?;
        }
    }
    let mut failed = [0; STATUS_BYTES as usize];
    device.download(&status, 0, &mut failed)?;
    let mut outputs = Vec::new();
    let sizes = parameters.iter().map(|parameter| parameter.bytes().unsigned_abs());
    let owners = parameters.iter().map(|parameter| Some(parameter.owner));
    let of_workspace = (program.workspace_bytes, None);
    for (memory, (bytes, owner)) in
        tensors.iter().chain([&workspace]).zip(sizes.zip(owners).chain([of_workspace]))
    {
        if let Some(overrun) = memory.overrun(device)? {
            return Ok(Err((Kind::Memory, format!("wrote {overrun} of a buffer"))));
        }
        let mut held = vec![0; bytes as usize];
        device.download(memory.memory(), 0, &mut held)?;
        if owner == Some(Owner::Output) {
            outputs.push(held);
        }
    }
    Ok(pair.judge(i32::from_le_bytes(failed), &outputs))
}
