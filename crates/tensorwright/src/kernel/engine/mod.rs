//! Execution engines, one file each: this processor or a device.
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
use tensorwright_schedule::workspace::Workspace;

use super::Place;

/// Compiled code with its engine.
pub(super) trait Engine: fmt::Debug + Send + Sync {
    /// The calling interface.
    fn interface(&self) -> &Interface;

    /// The state for a sequence of calls with a workspace of some size: that of the interface,
    /// unless sizes vary. Several may exist at the same time.
    fn session(&self, workspace: Workspace) -> Result<Box<dyn Session + '_>, CallError>;

    /// The load time of the code.
    fn load_time(&self) -> Duration;

    /// Computes on a foreign stream, with a place per parameter, and returns the status; `None` if
    /// the engine has no streams.
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

    /// The threads for parallel loops, other than the caller's.
    fn pool(&self) -> Option<&Pool> {
        None
    }
}

/// State for a sequence of calls.
pub(super) trait Session: fmt::Debug {
    /// Calls a function with a pointer for every parameter, and one to the numbers if sizes vary,
    /// and returns the status.
    ///
    /// # Safety
    /// Every pointer that is not null points to initialised memory of its parameter's size, aligned
    /// to its elements, which nobody writes during the call; memory that the function writes is
    /// used by nobody else during the call, and overlaps no other parameter's. Only parameters that
    /// the function does not use are null.
    unsafe fn call(
        &mut self,
        function: Function,
        pointers: &[*mut c_void],
    ) -> Result<i32, CallError>;

    /// Puts guards around device memory: later calls fail if they write beyond a tensor.
    fn guard(&mut self) -> Result<(), CallError> {
        Ok(())
    }

    /// Declares that the memory of a parameter has new values or moved.
    fn touch(&mut self, parameter: usize);

    /// The time of the last call by the device's clock; `None` for the host.
    fn elapsed(&self) -> Option<Duration>;
}

/// Why a call could not be made.
#[derive(Debug)]
pub(super) enum CallError {
    /// The code failed.
    Kernel(Error),
    /// The workspace cannot be allocated.
    Alloc(AllocError),
    /// The device failed.
    Device(DeviceError),
}
