//! GPU devices: OpenCL and CUDA.
//!
//! A [`DeviceProgram`] is a source text with its launches. A [`Device`] compiles it, allocates
//! memory for its tensors, and launches it on a queue, timed by the device's own clock. Vendors'
//! runtimes are loaded on first use and never linked: if one is missing, [`open`] says what to
//! install.
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
//! | file | contents |
//! | --- | --- |
//! | `device.rs` | [`Device`], [`Memory`], [`Loaded`]: the common interface of all APIs;
//! [`Streams`]: interoperability with other libraries on the same device |
//! | `kernel.rs` | [`Kernel`]: a program with its own memory |
//! | `deadline.rs`, `guarded.rs` | deadlines of launches; [`GuardedMemory`]: detects out-of-bounds
//! writes |
//! | `description.rs`, `limits.rs` | [`Description`]: properties of a device; limits, which are
//! checked before a driver call |
//! | `probe.rs` | [`Probe`]: benchmarks of a device's current speed |
//! | `registry.rs`, `api.rs` | [`devices`], [`open`], [`shared`], [`target`]: the APIs, one line each |
//! | `error.rs`, `build_log.rs` | [`DeviceError`]: errors with suggestions; locations of compile
//! errors |
//! | `library.rs` | run-time loading of libraries |
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
