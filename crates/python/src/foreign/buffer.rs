//! The buffer protocol.
#![allow(unsafe_code, reason = "the buffer protocol is a C interface")]

use std::ffi::CStr;
use std::fmt;

use pyo3::ffi;
use pyo3::prelude::*;
use tensorwright::DType;

use super::{Device, Extents, Foreign, Guard, Library, Refusal};

/// An acquired buffer, released on drop.
pub(super) struct BufferGuard {
    view: Box<ffi::Py_buffer>,
}

impl fmt::Debug for BufferGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferGuard").finish_non_exhaustive()
    }
}

impl Drop for BufferGuard {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: the view was filled by `PyObject_GetBuffer`, and is given back once.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.view) }
        });
    }
}

/// Whether an object has a buffer.
pub(super) fn offers(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) == 1 }
}

/// Acquires the buffer of an object.
pub(super) fn take(object: &Bound<'_, PyAny>) -> Result<Foreign, Refusal> {
    let mut view = Box::new(ffi::Py_buffer::new());
    let flags = ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT;
    // SAFETY: the object is alive, and the view is a place to write to. It stays where it is: some
    // exporters point into it.
    let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) };
    if status != 0 {
        let error = PyErr::fetch(object.py());
        return match as_bits(object) {
            Some((dtype, bits)) => take(&bits).map(|bits| Foreign { dtype: Ok(dtype), ..bits }),
            None => Err(refusal(object, error)),
        };
    }
    let guard = BufferGuard { view };
    let view = &guard.view;
    let rank = usize::try_from(view.ndim).unwrap_or(0);
    // SAFETY: with these flags an exporter fills as many extents and strides as there are axes, and a
    // format that ends in zero or none; all live as long as the view.
    let (extents, strides, format) = unsafe {
        (
            list(view.shape, rank),
            list(view.strides, rank),
            view.format.as_ref().map(|f| CStr::from_ptr(f)),
        )
    };
    let extents: Vec<i64> = extents.iter().map(|extent| *extent as i64).collect();
    let size = i64::try_from(view.itemsize).unwrap_or(0);
    let steps: Vec<i64> = strides.iter().map(|stride| *stride as i64).collect();
    let foreign = Foreign {
        pointer: view.buf.cast(),
        dtype: dtype(format.map_or(c"B", |format| format), view.itemsize),
        strides: super::strides(&extents, &steps, size)?,
        is_writable: view.readonly == 0,
        extents: Extents::new(&extents).ok_or_else(too_many)?,
        device: Device::Processor,
        library: Library::Numpy,
        _guard: Guard::Buffer(guard),
    };
    Ok(foreign)
}

/// NumPy's name for the element type of an array.
fn dtype_name(object: &Bound<'_, PyAny>) -> Option<String> {
    object.getattr("dtype").ok()?.getattr("name").ok()?.extract().ok()
}

/// The bits of an array of a type that the buffer protocol lacks, such as `ml_dtypes.bfloat16`.
fn as_bits<'py>(object: &Bound<'py, PyAny>) -> Option<(DType, Bound<'py, PyAny>)> {
    let name = dtype_name(object)?;
    let lacks = |dtype: &DType| dtype.row().buffer.is_empty() && dtype.row().torch == name;
    let dtype = DType::ALL.into_iter().find(lacks)?;
    let bits = object.call_method1("view", (format!("uint{}", 8 * dtype.bytes()),)).ok()?;
    Some((dtype, bits))
}

/// Element types that the buffer protocol lacks are none of ours.
fn refusal(object: &Bound<'_, PyAny>, error: PyErr) -> Refusal {
    match dtype_name(object) {
        Some(name) => Refusal::Unfit(format!(
            "has elements of {name}, which other libraries cannot read ({error}); convert it with .astype(...)"
        )),
        None => Refusal::Raised(error),
    }
}

pub(super) fn too_many() -> Refusal {
    Refusal::Unfit(format!("has more than {} axes", super::MAX_RANK))
}

/// # Safety
/// `pointer` is null or points to `length` numbers that outlive the result.
unsafe fn list<'a>(pointer: *const isize, length: usize) -> &'a [isize] {
    if pointer.is_null() {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

/// The element type of a format of Python's `struct` module.
fn dtype(format: &CStr, size: isize) -> Result<DType, String> {
    let text = format.to_string_lossy();
    let (order, kind) = match text.as_bytes() {
        [order @ (b'<' | b'>' | b'=' | b'@' | b'!'), kind] => (*order, *kind),
        [kind] => (b'@', *kind),
        _ => return Err(text.into_owned()),
    };
    let foreign_order =
        if cfg!(target_endian = "little") { order == b'>' || order == b'!' } else { order == b'<' };
    if foreign_order && size > 1 {
        return Err(format!("{text} (of the other byte order)"));
    }
    let is_kind = |dtype: &DType| {
        usize::try_from(size) == Ok(dtype.bytes())
            && dtype.row().buffer.bytes().any(|letter| letter == kind)
    };
    DType::ALL.into_iter().find(is_kind).ok_or_else(|| text.into_owned())
}
