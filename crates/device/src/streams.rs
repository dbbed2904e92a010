//! Streams and memory of other libraries in this process, on a device that both use.
#![allow(unsafe_code, reason = "works on addresses that others name")]

use tensorwright_schedule::interface::Function;

use crate::DeviceError;
use crate::device::{Arguments, Loaded, Memory};

/// A stream of another library, by the handle that the API of the device has for it. What it is asked for happens in
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamHandle(pub u64);

/// What a [`Device`](crate::Device) can do for other libraries of this process that use it too. Nothing is waited for
/// unless it is said.
pub trait Streams {
    /// Memory on the device that another library owns. It is not given back when it is dropped.
    ///
    /// # Safety
    /// There are so many bytes at the address, and they stay valid while anything that was asked for uses them.
    unsafe fn borrow(&mut self, address: u64, bytes: u64) -> Memory;

    /// Writes bytes from the beginning on, in the order of a stream.
    ///
    /// # Errors
    /// If they do not fit, or the device refuses.
    fn upload_on(
        &mut self,
        stream: StreamHandle,
        to: &Memory,
        bytes: &[u8],
    ) -> Result<(), DeviceError>;

    /// Launches all kernels of a function, in the order of a stream.
    ///
    /// # Errors
    /// If an argument is missing or too small, or if a launch is refused. What happens later is reported by who
    /// waits.
    ///
    /// # Safety
    /// As that of [`Device::launch`](crate::Device::launch); and the stream is one of the device.
    unsafe fn launch_on(
        &mut self,
        stream: StreamHandle,
        program: &Loaded,
        function: Function,
        arguments: &Arguments<'_>,
    ) -> Result<(), DeviceError>;

    /// Waits for all that was asked of a stream.
    ///
    /// # Errors
    /// If something that was asked for failed.
    fn wait_for(&mut self, stream: StreamHandle) -> Result<(), DeviceError>;
}
