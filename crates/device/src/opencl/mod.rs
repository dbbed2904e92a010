//! OpenCL, loaded at run time.
//!
//! | file | contents |
//! | --- | --- |
//! | `ffi.rs` | bindings |
//! | `calls.rs` | safe wrappers of calls and handles |
//! | `list.rs` | devices and their properties |
//! | `device.rs` | [`Device`](crate::Device) |

mod calls;
mod device;
mod ffi;
mod list;

use std::sync::OnceLock;

use tensorwright_machine::GpuApi;

use self::ffi::Functions;
use crate::DeviceError;
use crate::api::Api;

/// The registry entry.
pub(crate) const API: Api =
    Api { api: GpuApi::OpenCl, word: "opencl", list: list::list, open: device::open };

/// The names of the OpenCL loader.
const LIBRARIES: &[&str] = &["libOpenCL.so.1", "libOpenCL.so"];

const INSTALL: &str = "install the loader and the runtime of your device; on Debian, `apt-get install \
                       ocl-icd-libopencl1 pocl-opencl-icd` runs kernels on the processor";

/// The functions of the library, which is loaded on first use.
fn functions() -> Result<&'static Functions, DeviceError> {
    static FUNCTIONS: OnceLock<Result<Functions, DeviceError>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| load(LIBRARIES)).as_ref().map_err(Clone::clone)
}

fn load(names: &[&str]) -> Result<Functions, DeviceError> {
    Functions::load(GpuApi::OpenCl, names, INSTALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error_that_says_what_to_install() {
        let error = load(&["libno-such-library.so"]).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("there is no OpenCL on this machine: libno-such"), "{text}");
        assert!(error.help().contains("apt-get install"), "{}", error.help());
        let error = load(&["libc.so.6"]).unwrap_err();
        let text = "the OpenCL of this machine has no function `clGetPlatformIDs`";
        assert_eq!(error.to_string(), text);
    }
}
