//! DLPack, the exchange format of tensor libraries.
//!
//! Libraries with the C table of version 1.2 (PyTorch since 2.10) fill the struct without a Python
//! object; others make a capsule.
#![allow(unsafe_code, reason = "DLPack is a C interface")]

use std::ffi::{CStr, c_int, c_void};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use tensorwright::DType;

use super::buffer::too_many;
use super::{Device, Extents, Foreign, Guard, Library, Refusal};

const CPU: i32 = 1;
const CUDA: i32 = 2;
/// Page-locked host memory of CUDA.
const CUDA_HOST: i32 = 3;
/// CUDA's default stream, in the protocol and in the driver.
pub(crate) const DEFAULT_STREAM: u64 = 1;
const READ_ONLY: u64 = 1;
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
const LEGACY: &CStr = c"dltensor";
const USED_LEGACY: &CStr = c"used_dltensor";

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Debug)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
#[derive(Debug)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub(super) struct Managed {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    flags: u64,
    tensor: Tensor,
}

/// `DLManagedTensor`, before versioning.
#[repr(C)]
pub(super) struct Legacy {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

/// `DLPackExchangeAPI`, the part used here.
#[repr(C)]
pub(crate) struct Exchange {
    version: Version,
    previous: *const Exchange,
    allocate: *const c_void,
    to_managed: *const c_void,
    to_object: *const c_void,
    fill: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut Tensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

// SAFETY: a table is never written after its library made it.
unsafe impl Sync for Exchange {}

/// The contents of a capsule, deleted on drop.
#[derive(Debug)]
pub(super) enum DlpackGuard {
    Versioned(*mut Managed),
    Legacy(*mut Legacy),
}

impl Drop for DlpackGuard {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: whoever takes the struct out of a capsule calls its deleter, once.
            unsafe {
                match *self {
                    Self::Versioned(held) => (*held).deleter.map(|delete| delete(held)),
                    Self::Legacy(held) => (*held).deleter.map(|delete| delete(held)),
                };
            }
        });
    }
}

/// The C table of a class, if its version is known.
pub(crate) fn exchange(class: &Bound<'_, PyType>) -> PyResult<Option<&'static Exchange>> {
    let name = intern!(class.py(), "__dlpack_c_exchange_api__");
    let Some(capsule) = class.getattr_opt(name)? else { return Ok(None) };
    // SAFETY: the name says what the pointer is to; the table of a library is never freed.
    let mut table = unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr());
        pointer.cast::<Exchange>().as_ref()
    };
    if table.is_none() {
        // Not a capsule, or of another name: as if there were none.
        drop(PyErr::take(class.py()));
    }
    while let Some(found) = table {
        if found.version.major == 1 && found.fill.is_some() {
            return Ok(Some(found));
        }
        // SAFETY: null, or an older table of the same library.
        table = unsafe { found.previous.as_ref() };
    }
    Ok(None)
}

/// The memory of an object whose class has a C table.
pub(super) fn borrow(
    object: &Bound<'_, PyAny>,
    api: &Exchange,
    library: Library,
) -> Result<Foreign, Refusal> {
    let mut tensor = std::mem::MaybeUninit::<Tensor>::zeroed();
    let Some(fill) = api.fill else { return Err(Refusal::NoTensor) };
    // SAFETY: the table was found on the object's class, and the struct is a place to write to.
    if unsafe { fill(object.as_ptr(), tensor.as_mut_ptr()) } != 0 {
        return Err(unfit(object, &PyErr::fetch(object.py())));
    }
    // SAFETY: it was filled, and what it points to lives as long as the object is not changed.
    let mut foreign =
        unsafe { describe(tensor.assume_init_ref(), true, library, Guard::Borrowed) }?;
    if let Device::Cuda { number, stream } = &mut foreign.device {
        // The table's tensors are ready on the current stream of their library.
        *stream = Some(current_stream(object, api, *number)?);
    }
    Ok(foreign)
}

/// The current stream of a library.
fn current_stream(object: &Bound<'_, PyAny>, api: &Exchange, number: i32) -> Result<u64, Refusal> {
    let Some(current) = api.current_stream else {
        let text = "is on a device, but its library does not expose the stream; pass .cpu()";
        return Err(Refusal::Unfit(text.to_owned()));
    };
    let mut stream = std::ptr::null_mut();
    // SAFETY: the handle is a place to write to.
    match unsafe { current(CUDA, number, &raw mut stream) } {
        0 => Ok(stream as usize as u64),
        _ => Err(unfit(object, &PyErr::fetch(object.py()))),
    }
}

/// The memory of an object that makes capsules.
pub(super) fn take(object: &Bound<'_, PyAny>, library: Library) -> Result<Foreign, Refusal> {
    let py = object.py();
    let (kind, number): (i32, i32) =
        object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    let capsule = capsule(object, device(kind, number)?).map_err(|error| unfit(object, &error))?;
    // SAFETY: the capsule is alive; its name says what it holds; renaming it says that we give it back.
    unsafe {
        let raw = capsule.as_ptr();
        if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
            let held = ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr()).cast::<Managed>();
            ffi::PyCapsule_SetName(raw, USED_VERSIONED.as_ptr());
            let guard = Guard::Dlpack(DlpackGuard::Versioned(held));
            if (*held).version.major != 1 {
                let major = (*held).version.major;
                return Err(Refusal::Unfit(format!(
                    "uses DLPack {major}, but only version 1 is supported"
                )));
            }
            return describe(&(*held).tensor, (*held).flags & READ_ONLY == 0, library, guard);
        }
        if ffi::PyCapsule_IsValid(raw, LEGACY.as_ptr()) == 1 {
            let held = ffi::PyCapsule_GetPointer(raw, LEGACY.as_ptr()).cast::<Legacy>();
            ffi::PyCapsule_SetName(raw, USED_LEGACY.as_ptr());
            let guard = Guard::Dlpack(DlpackGuard::Legacy(held));
            return describe(&(*held).tensor, true, library, guard);
        }
    }
    Err(Refusal::Unfit("returned no DLPack capsule".to_owned()))
}

fn capsule<'py>(object: &Bound<'py, PyAny>, device: Device) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let name = intern!(py, "__dlpack__");
    let wishes = PyDict::new(py);
    if device != Device::Processor {
        wishes.set_item("stream", DEFAULT_STREAM)?;
    }
    let before_versions = wishes.copy()?;
    wishes.set_item("max_version", (1, 0))?;
    match object.call_method(name, (), Some(&wishes)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            object.call_method(name, (), Some(&before_versions))
        }
        other => other,
    }
}

/// Why a library refuses to export a tensor.
fn unfit(object: &Bound<'_, PyAny>, error: &PyErr) -> Refusal {
    let text = |name: &str| object.getattr(name).and_then(|value| value.str()).ok();
    let layout = text("layout").map(|text| text.to_string());
    let layout = layout.filter(|layout| layout.starts_with("torch.") && layout != "torch.strided");
    Refusal::Unfit(match layout {
        Some(layout) => format!("has the layout {layout}; pass .to_dense()"),
        None if text("device").is_some_and(|device| device == "meta") => {
            "is on the device meta, and has no memory".to_owned()
        }
        None => {
            // PyTorch appends a location in its own code.
            let said = error.to_string();
            format!("cannot be read: {}", said.lines().next().unwrap_or_default())
        }
    })
}

/// The device for DLPack's numbers.
fn device(kind: i32, number: i32) -> Result<Device, Refusal> {
    match kind {
        CPU | CUDA_HOST => Ok(Device::Processor),
        CUDA => Ok(Device::Cuda { number, stream: None }),
        _ => Err(Refusal::Unfit("is neither in CPU nor in CUDA memory; pass .cpu()".to_owned())),
    }
}

/// # Safety
/// The struct was filled by its library, and what it points to lives as long as the guard, or, without
/// one, as the object that the caller holds.
unsafe fn describe(
    tensor: &Tensor,
    is_writable: bool,
    library: Library,
    guard: Guard,
) -> Result<Foreign, Refusal> {
    let device = device(tensor.device_type, tensor.device_id)?;
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    // SAFETY: there are as many extents as axes, and as many strides or none.
    let (extents, strides) = unsafe { (list(tensor.shape, rank), list(tensor.strides, rank)) };
    let offset = usize::try_from(tensor.byte_offset).unwrap_or(0);
    Ok(Foreign {
        pointer: tensor.data.cast::<u8>().wrapping_add(offset),
        dtype: dtype(tensor.dtype),
        extents: Extents::new(extents).ok_or_else(too_many)?,
        strides: super::strides(extents, strides, 1)?,
        is_writable,
        library,
        device,
        _guard: guard,
    })
}

/// # Safety
/// `pointer` is null or points to `length` numbers that outlive the result.
unsafe fn list<'a>(pointer: *const i64, length: usize) -> &'a [i64] {
    if pointer.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

/// DLPack's code of an element type, if there is one.
fn data_type(dtype: DType) -> Option<DataType> {
    let code = dtype.row().dlpack;
    Some(DataType { code, bits: u8::try_from(8 * dtype.bytes()).ok()?, lanes: 1 })
}

fn dtype(found: DataType) -> Result<DType, String> {
    let DataType { code, bits, lanes } = found;
    let known = DType::ALL.into_iter().find(|dtype| data_type(*dtype) == Some(found));
    match (known, code) {
        (Some(dtype), _) => Ok(dtype),
        (None, 5) => Err(format!("complex{bits}")),
        _ => Err(format!("DLPack type {code} of {bits} bits, {lanes} lanes")),
    }
}
