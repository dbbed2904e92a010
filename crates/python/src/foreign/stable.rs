//! Tensor creation through PyTorch's stable C functions (2.14 and later).
//!
//! Faster than `torch.empty`. The tensors are PyTorch's own; those of DLPack borrow memory that
//! cannot be resized.
#![allow(unsafe_code, reason = "the stable functions of PyTorch are a C interface")]

use std::ffi::{CString, c_int, c_void};
use std::fmt;

use libloading::Library;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use tensorwright::DType;

use super::Device;

/// `AtenTensorHandle`
type Handle = *mut c_void;
type Number = unsafe extern "C" fn() -> i32;
type Empty = unsafe extern "C" fn(i64, *const i64, *const i64, i32, i32, i32, *mut Handle) -> c_int;

/// The functions, by their C names.
pub(crate) struct Stable {
    aoti_torch_empty_strided: Empty,
    aoti_torch_get_data_ptr: unsafe extern "C" fn(Handle, *mut *mut c_void) -> c_int,
    aoti_torch_delete_tensor_object: unsafe extern "C" fn(Handle) -> c_int,
    torch_tensor_to_pyobject:
        unsafe extern "C" fn(Handle, *mut c_void, *mut *mut ffi::PyObject) -> c_int,
    library: Library,
}

/// A kind of tensor to create.
#[derive(Debug)]
pub(crate) struct Blank {
    functions: &'static Stable,
    extents: Vec<i64>,
    strides: Vec<i64>,
    dtype: i32,
    device: (i32, i32),
}

impl fmt::Debug for Stable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stable").field("library", &self.library).finish_non_exhaustive()
    }
}

impl Stable {
    /// The functions of a PyTorch, if it has them.
    pub(crate) fn of(torch: &Bound<'_, PyModule>) -> Option<&'static Self> {
        static FUNCTIONS: PyOnceLock<Option<Stable>> = PyOnceLock::new();
        FUNCTIONS.get_or_init(torch.py(), || Self::load(torch)).as_ref()
    }

    fn load(torch: &Bound<'_, PyModule>) -> Option<Self> {
        // The dependencies of this library can be found through it.
        let path = torch.getattr("_C").and_then(|native| native.getattr("__file__")).ok()?;
        let path = path.cast_into::<PyString>().ok()?.to_string();
        // SAFETY: Python has loaded it already.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: the types are those that `torch/csrc/stable/c/shim.h` and `torch/csrc/inductor/aoti_torch/c/shim.h` declare, which
        // do not change; the library stays as long as the functions.
        unsafe {
            Some(Self {
                aoti_torch_empty_strided: *library.get(b"aoti_torch_empty_strided\0").ok()?,
                aoti_torch_get_data_ptr: *library.get(b"aoti_torch_get_data_ptr\0").ok()?,
                aoti_torch_delete_tensor_object: *library
                    .get(b"aoti_torch_delete_tensor_object\0")
                    .ok()?,
                torch_tensor_to_pyobject: *library.get(b"torch_tensor_to_pyobject\0").ok()?,
                library,
            })
        }
    }

    /// A constant returned by a PyTorch function.
    fn constant(&self, name: &str) -> Option<i32> {
        let name = CString::new(name).ok()?;
        // SAFETY: functions with the names that are asked for below take nothing and return a number.
        unsafe { Some(self.library.get::<Number>(name.as_bytes_with_nul()).ok()?()) }
    }
}

impl Blank {
    /// A maker of dense tensors like this.
    pub(crate) fn new(
        functions: &'static Stable,
        dtype: DType,
        extents: &[i64],
        device: Device,
    ) -> Option<Self> {
        let (kind, number) = match device {
            Device::Processor => ("cpu", 0),
            Device::Cuda { number, .. } => ("cuda", number),
        };
        let kind = functions.constant(&format!("aoti_torch_device_type_{kind}"))?;
        let dtype = functions.constant(&format!("aoti_torch_dtype_{}", dtype.row().torch))?;
        let mut strides = vec![1; extents.len()];
        for axis in (1..extents.len()).rev() {
            // As in PyTorch: a tensor without elements has strides too.
            strides[axis - 1] = strides[axis] * extents[axis].max(1);
        }
        Some(Self { functions, extents: extents.to_vec(), strides, dtype, device: (kind, number) })
    }

    /// A new tensor and its address; `None` if PyTorch fails.
    pub(crate) fn make<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyAny>, *mut u8)> {
        let functions = self.functions;
        let (mut handle, mut memory) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut object = std::ptr::null_mut();
        // SAFETY: there are as many extents and strides as axes, and the others are places to write to. A status other than zero says
        // that nothing was made. The object has a reference of its own to the tensor, and is ours.
        unsafe {
            let made = (functions.aoti_torch_empty_strided)(
                self.extents.len() as i64,
                self.extents.as_ptr(),
                self.strides.as_ptr(),
                self.dtype,
                self.device.0,
                self.device.1,
                &raw mut handle,
            );
            if made != 0 {
                return None;
            }
            let found = (functions.aoti_torch_get_data_ptr)(handle, &raw mut memory) == 0
                && (functions.torch_tensor_to_pyobject)(
                    handle,
                    std::ptr::null_mut(),
                    &raw mut object,
                ) == 0;
            (functions.aoti_torch_delete_tensor_object)(handle);
            let object = Bound::from_owned_ptr_or_opt(py, object)?;
            found.then_some((object, memory.cast()))
        }
    }
}
