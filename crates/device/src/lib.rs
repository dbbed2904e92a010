//! Devices that programs for graphics processors run on.
//!
//! A [`DeviceProgram`] is a text with its launches. A [`Device`] compiles it, has memory for its tensors, and
//! launches it on a queue, timed by the device's own clock. Runtimes of vendors are loaded when they are used
//! and never linked: without one, [`open`] says what to install.
//!
//! ```
//! use tensorwright_device::{DeviceError, open};
//!
//! match open("opencl") {
//!     Ok(mut device) => {
//!         let memory = device.allocate(4)?;
//!         device.upload(&memory, 0, &7u32.to_le_bytes())?;
//!         let mut bytes = [0; 4];
//!         device.download(&memory, 0, &mut bytes)?;
//!         assert_eq!(u32::from_le_bytes(bytes), 7);
//!     }
//!     Err(error) => println!("{error}; {}", error.help()),
//! }
//! # Ok::<(), DeviceError>(())
//! ```
//!
//! | where | what |
//! | --- | --- |
//! | `device.rs` | [`Device`], [`Memory`], [`Loaded`]: the interface that all APIs implement; [`Streams`]: memory and streams of other libraries on the same device |
//! | `kernel.rs` | [`Kernel`]: a program with the memory that is its own |
//! | `deadline.rs`, `guarded.rs` | how long launches may take; [`GuardedMemory`]: what shows that a kernel leaves its memory |
//! | `description.rs`, `limits.rs` | [`Description`]: what a device is; what it refuses is refused before its driver sees it |
//! | `probe.rs` | [`Probe`]: what a device can do at this moment |
//! | `registry.rs`, `api.rs` | [`devices`], [`open`], [`shared`], [`target`]: the APIs, one line each |
//! | `error.rs`, `build_log.rs` | [`DeviceError`]: where, what, what to do; where a compiler found a mistake |
//! | `library.rs` | libraries at run time |
//! | `opencl/`, [`cuda`] | OpenCL and CUDA |

mod api;
mod build_log;
pub mod cuda;
mod deadline;
mod description;
mod device;
mod error;
mod guarded;
mod kernel;
mod library;
mod limits;
mod opencl;
mod probe;
mod registry;
#[cfg(test)]
mod tests;

pub use build_log::{BuildLine, BuildLog};
pub use deadline::{DEFAULT_DEADLINE, deadline, set_deadline, set_interrupt};
pub use description::{Description, DeviceKind, Limits};
pub use device::{
    Arguments, Device, Elapsed, HostMemory, Loaded, Memory, STATUS_BYTES, StreamHandle, Streams,
};
pub use error::{DeviceError, Overrun, Status};
pub use guarded::GuardedMemory;
pub use kernel::{Allocate, Kernel};
pub use probe::{Probe, ProbeKind};
pub use registry::{Listing, SharedDevice, devices, open, shared, target};
pub use tensorwright_schedule::interface::{DeviceProgram, LaunchPlan};
