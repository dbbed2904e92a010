//! [`Api`]: a registry entry for an API such as OpenCL or CUDA.

use tensorwright_machine::GpuApi;

use crate::{Description, Device, DeviceError};

/// A registry entry for an API.
pub(crate) struct Api {
    /// The API.
    pub(crate) api: GpuApi,
    /// The prefix of its device names.
    pub(crate) word: &'static str,
    /// Its devices, in the order of their numbers.
    pub(crate) list: fn() -> Result<Vec<Description>, DeviceError>,
    /// Opens a device by number.
    pub(crate) open: fn(usize) -> Result<Box<dyn Device>, DeviceError>,
}

impl Api {
    /// The number of a device, given its name, if it belongs to this API.
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
