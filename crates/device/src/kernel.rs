//! [`Kernel`]: a program on a device, with its own memory.
#![allow(unsafe_code, reason = "launches kernels that nothing is known of")]

use tensorwright_schedule::interface::Function;

use crate::device::{Arguments, Elapsed, Loaded, Memory, STATUS_BYTES};
use crate::{Device, DeviceError, DeviceProgram};

/// An allocator of device memory.
pub type Allocate<'a> = &'a mut dyn FnMut(&mut dyn Device, u64) -> Result<Memory, DeviceError>;

/// A program on a device, with its own memory: prepared buffers, workspace, status.
#[derive(Debug)]
pub struct Kernel {
    loaded: Loaded,
    /// For each parameter, its memory if it is a prepared buffer.
    prepared: Vec<Option<Memory>>,
    workspace: Memory,
    status: Memory,
}

impl Kernel {
    /// Compiles a program and allocates its own memory.
    ///
    /// # Errors
    /// Those of [`Device::load`] and [`Device::allocate`].
    pub fn load(device: &mut dyn Device, program: &DeviceProgram) -> Result<Self, DeviceError> {
        Self::load_with(device, program, &mut |device, bytes| device.allocate(bytes))
    }

    /// The same with a custom allocator.
    ///
    /// # Errors
    /// Those of [`Device::load`] and of `allocate`.
    pub fn load_with(
        device: &mut dyn Device,
        program: &DeviceProgram,
        allocate: Allocate<'_>,
    ) -> Result<Self, DeviceError> {
        let loaded = device.load(program)?;
        let parameters = program.interface.parameters.iter();
        let prepared = parameters.map(|parameter| match parameter.is_explicit() {
            true => Ok(None),
            false => allocate(device, parameter.bytes().unsigned_abs()).map(Some),
        });
        let prepared = prepared.collect::<Result<_, _>>()?;
        let workspace = allocate(device, program.workspace_bytes)?;
        let status = device.allocate(STATUS_BYTES)?;
        device.upload(&status, 0, &[0; STATUS_BYTES as usize])?;
        Ok(Self { loaded, prepared, workspace, status })
    }

    /// The program, without its text.
    #[must_use]
    pub fn program(&self) -> &DeviceProgram {
        self.loaded.program()
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> &Memory {
        &self.workspace
    }

    /// Its own memory, with the number of bytes in use.
    pub fn memory(&self) -> impl Iterator<Item = (&str, u64, &Memory)> {
        let parameters = &self.program().interface.parameters;
        let prepared = parameters.iter().zip(&self.prepared).filter_map(|(parameter, memory)| {
            Some((parameter.name.as_str(), parameter.bytes().unsigned_abs(), memory.as_ref()?))
        });
        let workspace = ("workspace", self.program().workspace_bytes, &self.workspace);
        prepared.chain([workspace])
    }

    /// Calls a function. `tensors` are the inputs and outputs of the interface, in order.
    ///
    /// # Errors
    /// Those of [`Device::launch`], and [`DeviceError::FailedRead`].
    ///
    /// # Safety
    /// As for [`Device::launch`]: the program must respect its interface.
    pub unsafe fn call(
        &self,
        device: &mut dyn Device,
        function: Function,
        tensors: &[&Memory],
    ) -> Result<Elapsed, DeviceError> {
        let mut tensors = tensors.iter().copied();
        let parameters =
            self.prepared.iter().map_while(|own| own.as_ref().or_else(|| tensors.next()));
        let parameters: Vec<&Memory> = parameters.collect();
        let surplus = tensors.count();
        if surplus > 0 {
            return Err(device
                .describe()
                .mismatch(format!("{surplus} tensors too many were passed")));
        }
        let (workspace, status) = (&self.workspace, &self.status);
        let arguments = Arguments { parameters: &parameters, workspace, status };
        // SAFETY: the caller vouches for the program.
        let elapsed = unsafe { device.launch(&self.loaded, function, &arguments) }?;
        let mut status = [0; STATUS_BYTES as usize];
        device.download(&self.status, 0, &mut status)?;
        match i32::from_le_bytes(status) {
            0 => Ok(elapsed),
            failed => {
                device.upload(&self.status, 0, &[0; STATUS_BYTES as usize])?;
                Err(DeviceError::FailedRead { status: failed })
            }
        }
    }
}
