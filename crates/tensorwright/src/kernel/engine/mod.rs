//! What runs compiled code: this processor, or a device. One file each.
#![allow(unsafe_code, reason = "engines are handed pointers to the memory of calls")]

mod device;
mod processor;
mod streams;

pub(super) use device::OnDevice;
pub(super) use processor::OnProcessor;

use std::ffi::c_void;
use std::fmt;
use std::time::Duration;

use tensorwright_codegen_llvm::error::Error;
use tensorwright_device::{DeviceError, StreamHandle};
use tensorwright_runtime::{AllocError, Pool};
use tensorwright_schedule::Interface;
use tensorwright_schedule::interface::Function;

use super::Place;

/// Compiled code, and what runs it.
pub(super) trait Engine: fmt::Debug + Send + Sync {
    /// How the code is called.
    fn interface(&self) -> &Interface;

    /// What calls need besides their parameters. Several may exist at the same time.
    fn session(&self) -> Result<Box<dyn Session + '_>, CallError>;

    /// How long it took to make the code callable.
    fn load_time(&self) -> Duration;

    /// Computes on a stream of another library, with a place for every parameter, and returns the status; `None` if
    /// there are no streams.
    ///
    /// # Safety
    /// As [`Kernel::call_on_stream`](crate::Kernel::call_on_stream).
    unsafe fn enqueue(
        &self,
        _stream: StreamHandle,
        _places: &[Place],
        _wait: bool,
    ) -> Option<Result<i32, CallError>> {
        None
    }

    /// The threads that parallel loops use beside the caller's.
    fn pool(&self) -> Option<&Pool> {
        None
    }
}

/// What calls that follow each other need besides their parameters.
pub(super) trait Session: fmt::Debug {
    /// Calls a function with a pointer for every parameter, and returns the status.
    ///
    /// # Safety
    /// Every pointer that is not null points to initialised memory of its parameter's size, aligned to its elements,
    /// which nobody writes during the call; memory that the function writes is used by nobody else during the
    /// call, and overlaps no other parameter's. Only parameters that the function does not use are null.
    unsafe fn call(
        &mut self,
        function: Function,
        pointers: &[*mut c_void],
    ) -> Result<i32, CallError>;

    /// Puts guards around memory of a device: a call that writes beyond a tensor is an error from now on.
    fn guard(&mut self) -> Result<(), CallError> {
        Ok(())
    }

    /// The next call finds other values in the memory of a parameter than the last one, or other memory.
    fn touch(&mut self, parameter: usize);

    /// How long the last call took by the clock of what ran it, where that is not the caller's.
    fn elapsed(&self) -> Option<Duration>;
}

/// Why a call could not be made.
#[derive(Debug)]
pub(super) enum CallError {
    /// The code refused it.
    Kernel(Error),
    /// There is no memory for the workspace.
    Alloc(AllocError),
    /// The device refused it.
    Device(DeviceError),
}
