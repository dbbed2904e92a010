//! [`Api`]: an API that devices are programmed by, as the registry knows it.

use tensorwright_machine::GpuApi;

use crate::{Description, Device, DeviceError};

/// An API that devices are programmed by.
pub(crate) struct Api {
    /// Which one.
    pub(crate) api: GpuApi,
    /// The first part of the names of its devices.
    pub(crate) word: &'static str,
    /// Its devices, in the order of their numbers.
    pub(crate) list: fn() -> Result<Vec<Description>, DeviceError>,
    /// Opens the device of a number.
    pub(crate) open: fn(usize) -> Result<Box<dyn Device>, DeviceError>,
}

impl Api {
    /// The number of the device of a name, if it is one of this API's.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        match name.strip_prefix(self.word)? {
            "" => Some(0),
            rest => rest.strip_prefix(':')?.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        let list = || Ok(Vec::new());
        let open = |_| Err(DeviceError::NoSuchDevice { name: String::new(), known: Vec::new() });
        let api = Api { api: GpuApi::OpenCl, word: "opencl", list, open };
        let number = |name| api.number(name);
        assert_eq!(number("opencl"), Some(0));
        assert_eq!(number("opencl:0"), Some(0));
        assert_eq!(number("opencl:12"), Some(12));
        let others = ["", "open", "opencl:", "opencl:x", "opencl:-1", "opencl1", "cuda:0"];
        assert!(others.into_iter().all(|name| number(name).is_none()));
    }
}
