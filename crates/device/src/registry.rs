//! The registry of device APIs, one line each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tensorwright_machine::{GpuApi, Target, TargetError};

use crate::api::Api;
use crate::{Description, Device, DeviceError, cuda, opencl};

/// All APIs.
#[rustfmt::skip]
const APIS: &[Api] = &[
    cuda::API,
    opencl::API,
];

/// The devices of an API, or the error if there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The API.
    pub api: GpuApi,
    /// Its devices, in the order of their numbers.
    pub devices: Result<Vec<Description>, DeviceError>,
}

/// The devices of this machine, by API. This loads all runtimes, some of which take a tenth of a
/// second.
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

/// Opens a device: `opencl` is the first OpenCL device, `opencl:1` the second, `cuda` the first
/// NVIDIA device.
///
/// # Errors
/// There is no such device, or its runtime is not installed.
///
/// ```
/// let error = tensorwright_device::open("vax:3").err().expect("nothing runs on a VAX");
/// assert_eq!(error.to_string(), "there is no device `vax:3`");
/// ```
pub fn open(name: &str) -> Result<Box<dyn Device>, DeviceError> {
    let Some((api, number)) = numbered(name) else { return Err(no_such_device(name)) };
    let _span = tracing::debug_span!("open device", name).entered();
    describe(api, number, name)?;
    (api.open)(number)
}

/// A device that several kernels of this process use, one at a time.
pub type SharedDevice = Arc<Mutex<Box<dyn Device>>>;

/// A device by name, opened once for all concurrent users, which share memory.
///
/// # Errors
/// As [`open`].
pub fn shared(name: &str) -> Result<SharedDevice, DeviceError> {
    type Opened = Mutex<HashMap<String, Weak<Mutex<Box<dyn Device>>>>>;
    static OPENED: OnceLock<Opened> = OnceLock::new();
    // Every change is one insertion, so the map is valid even after a panic.
    let opened = OPENED.get_or_init(Mutex::default).lock();
    let mut opened = opened.unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = opened.get(name).and_then(Weak::upgrade) {
        return Ok(found);
    }
    let device = Arc::new(Mutex::new(open(name)?));
    opened.insert(name.to_owned(), Arc::downgrade(&device));
    Ok(device)
}

/// The target of a name: those of [`Target::named`], and the devices of this machine, whose
/// runtimes describe them.
///
/// ```
/// use tensorwright_device::target;
///
/// assert!(target("avx2")?.cpu().is_some());
/// match target("opencl:0") {
///     Ok(device) => println!("{} units", device.gpu().map_or(0, |gpu| gpu.units)),
///     Err(error) => println!("{error}; {}", error.help()),
/// }
/// # Ok::<(), tensorwright_machine::TargetError>(())
/// ```
///
/// # Errors
/// An unknown name, or an unavailable device.
pub fn target(name: &str) -> Result<Target, TargetError> {
    let Some((api, number)) = numbered(name) else { return Target::named(name) };
    match describe(api, number, name) {
        Ok(device) => Ok(Target::Gpu(device.gpu)),
        Err(error) => {
            let (name, reason, help) = (name.to_owned(), error.to_string(), error.help());
            Err(TargetError::NoDevice { name, reason, help })
        }
    }
}

/// The API and number of a device name.
fn numbered(name: &str) -> Option<(&'static Api, usize)> {
    APIS.iter().find_map(|api| Some((api, api.number(name)?)))
}

/// The properties of a device, by number.
fn describe(api: &Api, number: usize, name: &str) -> Result<Description, DeviceError> {
    (api.list)()?.into_iter().nth(number).ok_or_else(|| no_such_device(name))
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
