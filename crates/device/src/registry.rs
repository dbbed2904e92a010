//! The APIs, one line each, and the devices that they know by name.

use tensorwright_target::GpuApi;

use crate::api::Api;
use crate::{Description, Device, DeviceError, cuda, opencl};

/// All APIs.
#[rustfmt::skip]
const APIS: &[Api] = &[
    cuda::API,
    opencl::API,
];

/// The devices of an API, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The API.
    pub api: GpuApi,
    /// Its devices, in the order of their numbers.
    pub devices: Result<Vec<Description>, DeviceError>,
}

/// The devices of this machine, by API. Runtimes are loaded to find out: some take a tenth of a second.
///
/// ```
/// for listing in tensorwright_device::devices() {
///     match listing.devices {
///         Ok(devices) => devices.iter().for_each(|device| println!("{}: {device}", device.name())),
///         Err(error) => println!("{}: {error}; {}", listing.api, error.help()),
///     }
/// }
/// ```
#[must_use]
pub fn devices() -> Vec<Listing> {
    APIS.iter().map(|api| Listing { api: api.api, devices: (api.list)() }).collect()
}

/// Opens a device: `opencl` is the first that OpenCL knows, `opencl:1` the second, `cuda` the first of NVIDIA's.
///
/// # Errors
/// If there is no such device, or its runtime is not installed.
///
/// ```
/// let error = tensorwright_device::open("vax:3").err().expect("nothing runs on a VAX");
/// assert_eq!(error.to_string(), "there is no device `vax:3`");
/// ```
pub fn open(name: &str) -> Result<Box<dyn Device>, DeviceError> {
    let Some((api, number)) = APIS.iter().find_map(|api| Some((api, api.number(name)?))) else {
        return Err(no_such_device(name));
    };
    let devices = (api.list)()?;
    if number >= devices.len() {
        return Err(no_such_device(name));
    }
    (api.open)(number)
}

fn no_such_device(name: &str) -> DeviceError {
    let devices = devices().into_iter().filter_map(|listing| listing.devices.ok()).flatten();
    let known = devices.map(|device| device.name().to_owned()).collect();
    DeviceError::NoSuchDevice { name: name.to_owned(), known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_device_has_are_refused() {
        for name in ["", "vax", "opencl:", "opencl:99999", "opencl:99999999999999999999", "native"]
        {
            let error = open(name).err().expect(name);
            let known = matches!(error, DeviceError::NoSuchDevice { .. });
            let missing =
                matches!(error, DeviceError::NoRuntime { .. } | DeviceError::NoDevices { .. });
            assert!(known || missing, "{error}");
            assert!(!error.help().is_empty());
        }
    }
}
