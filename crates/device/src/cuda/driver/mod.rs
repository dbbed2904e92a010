//! The CUDA driver: NVIDIA devices.
//!
//! | file | contents |
//! | --- | --- |
//! | `ffi.rs` | bindings |
//! | `calls.rs` | safe wrappers of calls and handles |
//! | `list.rs` | devices and their properties |
//! | `device.rs` | [`Device`] |

mod calls;
mod device;
mod ffi;
mod list;

use std::path::Path;
use std::sync::OnceLock;

use tensorwright_machine::GpuApi;

use self::calls::Driver;
use self::ffi::Functions;
use crate::api::Api;
use crate::{Description, Device, DeviceError};

/// The registry entry.
pub(crate) const API: Api = Api { api: GpuApi::Cuda, word: "cuda", list, open };

/// The name of the system's driver library.
const LIBRARY: &str = "libcuda.so.1";

const INSTALL: &str = "install the driver of your graphics processor; compiling alone needs none \
                       (`pip install nvidia-cuda-nvrtc-cu12`)";

fn list() -> Result<Vec<Description>, DeviceError> {
    Ok(list::found(driver()?)?.into_iter().map(|(_, description)| description).collect())
}

fn open(number: usize) -> Result<Box<dyn Device>, DeviceError> {
    device::open(driver()?, number)
}

/// Opens a device with a given driver library: a custom one, or the stand-in of tests.
///
/// # Errors
/// The file is not a driver, or has no such device.
pub fn open_with(library: &Path, number: usize) -> Result<Box<dyn Device>, DeviceError> {
    let functions = load(library)?;
    device::open(start(Box::leak(Box::new(functions)))?, number)
}

/// The system's driver, loaded on first use.
fn driver() -> Result<Driver, DeviceError> {
    static FUNCTIONS: OnceLock<Result<Functions, DeviceError>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| load(Path::new(LIBRARY)));
    start(functions.as_ref().map_err(Clone::clone)?)
}

fn load(library: &Path) -> Result<Functions, DeviceError> {
    Functions::load(GpuApi::Cuda, [library], INSTALL)
}

fn start(functions: &'static Functions) -> Result<Driver, DeviceError> {
    let no_devices = DeviceError::NoDevices { api: GpuApi::Cuda, install: INSTALL };
    Driver::start(functions).map_err(|failure| match failure.code() {
        ffi::NO_DEVICE => no_devices,
        _ => failure.on("CUDA"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_driver_is_an_error_that_says_what_to_install() {
        let error = open_with(Path::new("/nowhere/libcuda.so.1"), 0).err().unwrap();
        assert!(error.to_string().starts_with("there is no CUDA on this machine"), "{error}");
        assert!(error.help().contains("install the driver"), "{}", error.help());
        let error = open_with(Path::new("libc.so.6"), 0).err().unwrap();
        assert!(error.to_string().contains("no function `cuInit`"), "{error}");
    }
}
