//! Device engine: runtime-compiled kernels on device copies of arguments.
#![allow(unsafe_code, reason = "launches compiled kernels, and copies from and to pointers")]

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorwright_device::{
    Arguments, Device, DeviceError, DeviceProgram, GuardedMemory, Loaded, Memory, STATUS_BYTES,
    SharedDevice, StreamHandle,
};
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::{Function, Parameter};
use tensorwright_schedule::nest::Owner;
use tensorwright_schedule::workspace::Workspace;

use super::super::Place;
use super::streams::{Locked, OfStreams};
use super::{CallError, Engine, Session};

/// Kernels on a device.
#[derive(Debug)]
pub(in super::super) struct OnDevice {
    interface: Interface,
    workspace_bytes: u64,
    inner: Inner,
    load_time: Duration,
}

/// The parts without `Debug`.
struct Inner {
    device: SharedDevice,
    /// Dropped before the code: the device waits for users of freed memory.
    of_streams: Mutex<OfStreams>,
    loaded: Mutex<Loaded>,
    /// Memory not in use by any call.
    idle: Mutex<Vec<Tensors>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a device")
    }
}

/// Device memory for all parameters of a call.
#[derive(Debug)]
struct Tensors {
    parameters: Vec<Held>,
    workspace: Held,
    status: Memory,
}

/// Memory of a call, with or without guards.
#[derive(Debug)]
enum Held {
    Plain(Memory),
    Guarded(GuardedMemory),
}

impl Held {
    /// Allocates memory. Some runtimes cannot allocate zero bytes.
    fn allocate(
        device: &mut dyn Device,
        bytes: u64,
        is_guarded: bool,
    ) -> Result<Self, DeviceError> {
        let bytes = bytes.max(1);
        match is_guarded {
            true => GuardedMemory::allocate(device, bytes).map(Self::Guarded),
            false => device.allocate(bytes).map(Self::Plain),
        }
    }

    fn memory(&self) -> &Memory {
        match self {
            Self::Plain(memory) => memory,
            Self::Guarded(guarded) => guarded.memory(),
        }
    }

    /// Checks the guards for out-of-bounds writes; `what` names the memory.
    fn check(
        &self,
        device: &mut dyn Device,
        what: impl FnOnce() -> String,
    ) -> Result<(), DeviceError> {
        let Self::Guarded(guarded) = self else { return Ok(()) };
        match guarded.overrun(device)? {
            None => Ok(()),
            Some(overrun) => {
                let device = device.describe().name().to_owned();
                Err(DeviceError::Overrun { device, what: what(), overrun })
            }
        }
    }
}

/// Memory for a sequence of calls.
#[derive(Debug)]
struct Call<'a> {
    engine: &'a OnDevice,
    /// Present until the call is dropped.
    tensors: Option<Tensors>,
    /// Whether the device has the current values of each parameter.
    is_there: Vec<bool>,
    is_guarded: bool,
    elapsed: Option<Duration>,
}

/// Locks; the guarded value is only read or replaced as a whole, so a panic leaves it valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a function writes a parameter.
fn is_written(parameter: &Parameter, function: Function) -> bool {
    match function {
        Function::Prepare => parameter.owner == Owner::Prepared,
        Function::Compute => parameter.owner == Owner::Output,
    }
}

impl OnDevice {
    /// Compiles a program for a device.
    pub(in super::super) fn load(
        device: SharedDevice,
        program: &DeviceProgram,
    ) -> Result<Self, DeviceError> {
        let start = Instant::now();
        let loaded = lock(&device).load(program)?;
        let (loaded, idle, of_streams) = (Mutex::new(loaded), Mutex::default(), Mutex::default());
        Ok(Self {
            interface: program.interface.clone(),
            workspace_bytes: program.workspace_bytes,
            inner: Inner { device, loaded, idle, of_streams },
            load_time: start.elapsed(),
        })
    }

    /// Memory for a call.
    fn tensors(&self, device: &mut dyn Device, is_guarded: bool) -> Result<Tensors, DeviceError> {
        let parameters = self.interface.parameters.iter();
        let parameters = parameters
            .map(|parameter| Held::allocate(device, parameter.bytes().unsigned_abs(), is_guarded));
        let parameters = parameters.collect::<Result<_, _>>()?;
        let workspace = Held::allocate(device, self.workspace_bytes, is_guarded)?;
        let status = device.allocate(STATUS_BYTES)?;
        device.upload(&status, 0, &[0; STATUS_BYTES as usize])?;
        Ok(Tensors { parameters, workspace, status })
    }
}

impl Engine for OnDevice {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn session(&self, _: Workspace) -> Result<Box<dyn Session + '_>, CallError> {
        let kept = lock(&self.inner.idle).pop();
        let tensors = match kept {
            Some(tensors) => tensors,
            None => {
                let mut device = lock(&self.inner.device);
                self.tensors(device.as_mut(), false).map_err(CallError::Device)?
            }
        };
        let is_there = vec![false; tensors.parameters.len()];
        let tensors = Some(tensors);
        Ok(Box::new(Call { engine: self, tensors, is_there, is_guarded: false, elapsed: None }))
    }

    fn load_time(&self) -> Duration {
        self.load_time
    }

    unsafe fn enqueue(
        &self,
        stream: StreamHandle,
        places: &[Place],
        wait: bool,
    ) -> Option<Result<i32, CallError>> {
        let Inner { device, of_streams, loaded, .. } = &self.inner;
        let mut device = lock(device);
        let locked = Locked {
            interface: &self.interface,
            workspace_bytes: self.workspace_bytes,
            device: device.as_mut(),
            loaded: &lock(loaded),
            of_streams: &mut lock(of_streams),
        };
        // SAFETY: the caller vouches for places and stream.
        Some(unsafe { locked.enqueue(stream, places, wait) }.map_err(CallError::Device))
    }
}

impl Call<'_> {
    /// Copies missing values to the device, launches, and fetches the results.
    ///
    /// # Safety
    /// As [`Session::call`].
    unsafe fn launch(
        &mut self,
        function: Function,
        pointers: &[*mut c_void],
    ) -> Result<i32, DeviceError> {
        let Inner { device, loaded, .. } = &self.engine.inner;
        let mut device = lock(device);
        let Some(Tensors { parameters, workspace, status }) = &self.tensors else { return Ok(0) };
        let of_interface = &self.engine.interface.parameters;
        let memories: Vec<&Memory> = parameters.iter().map(Held::memory).collect();
        let each = || of_interface.iter().zip(memories.iter().copied()).zip(pointers);
        for (((parameter, memory), pointer), is_there) in each().zip(&mut self.is_there) {
            let bytes = usize::try_from(parameter.bytes()).unwrap_or(0);
            if is_written(parameter, function) || *is_there || pointer.is_null() || bytes == 0 {
                continue;
            }
            // SAFETY: the caller vouches for as many bytes as the parameter has.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), bytes) };
            device.upload(memory, 0, bytes)?;
            *is_there = true;
        }
        let arguments = Arguments { parameters: &memories, workspace: workspace.memory(), status };
        // SAFETY: the kernels were emitted for the interface that the memory was allocated for. They read and write
        // inside of their tensors: subscripts that are not proven to be are checked, and set the status.
        let elapsed = unsafe { device.launch(&lock(loaded), function, &arguments) }?;
        self.elapsed = Some(elapsed.total);
        for (parameter, held) in of_interface.iter().zip(parameters) {
            held.check(device.as_mut(), || format!("tensor `{}`", parameter.name))?;
        }
        workspace.check(device.as_mut(), || "the workspace".to_owned())?;
        let mut failed = [0; STATUS_BYTES as usize];
        device.download(status, 0, &mut failed)?;
        if failed != [0; STATUS_BYTES as usize] {
            device.upload(status, 0, &[0; STATUS_BYTES as usize])?;
            return Ok(i32::from_le_bytes(failed));
        }
        for ((parameter, memory), pointer) in each() {
            let bytes = usize::try_from(parameter.bytes()).unwrap_or(0);
            if is_written(parameter, function) && !pointer.is_null() && bytes > 0 {
                // SAFETY: the caller vouches for as many bytes as the parameter has, which are this call's alone.
                let bytes = unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u8>(), bytes) };
                device.download(memory, 0, bytes)?;
            }
        }
        Ok(0)
    }
}

impl Session for Call<'_> {
    unsafe fn call(
        &mut self,
        function: Function,
        pointers: &[*mut c_void],
    ) -> Result<i32, CallError> {
        // SAFETY: the caller vouches for the pointers.
        unsafe { self.launch(function, pointers) }.map_err(CallError::Device)
    }

    fn guard(&mut self) -> Result<(), CallError> {
        if self.is_guarded {
            return Ok(());
        }
        let mut device = lock(&self.engine.inner.device);
        let guarded = self.engine.tensors(device.as_mut(), true).map_err(CallError::Device)?;
        lock(&self.engine.inner.idle).extend(self.tensors.replace(guarded));
        self.is_there.fill(false);
        self.is_guarded = true;
        Ok(())
    }

    fn touch(&mut self, parameter: usize) {
        if let Some(is_there) = self.is_there.get_mut(parameter) {
            *is_there = false;
        }
    }

    fn elapsed(&self) -> Option<Duration> {
        self.elapsed
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_guarded {
            lock(&self.engine.inner.idle).extend(self.tensors.take());
        }
    }
}
