//! Tensors of other libraries, where they are: through the buffer protocol (NumPy, `memoryview`) or DLPack
//! (PyTorch and others).

mod buffer;
pub(crate) mod dlpack;

use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use tensorwright::DType;

use self::buffer::BufferGuard;
use self::dlpack::{DlpackGuard, Exchange};

/// The most axes of a tensor.
pub(crate) const MAX_RANK: usize = 16;

/// Memory of another library, described and kept alive while this exists.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) pointer: *mut u8,
    /// The element type, or how the other library calls one that we have not.
    pub(crate) dtype: Result<DType, String>,
    pub(crate) extents: Extents,
    /// Whether the elements lie one after the other in row-major order.
    pub(crate) is_dense: bool,
    pub(crate) is_writable: bool,
    pub(crate) library: Library,
    pub(crate) device: Device,
    _guard: Guard,
}

/// Where memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    /// In that of the process.
    Processor,
    /// In that of a device of NVIDIA's.
    Cuda {
        /// Its number.
        number: i32,
        /// The stream that its library works on at the moment. Without one, memory is ready on the default stream, and
        /// results have to be when the call returns.
        stream: Option<u64>,
    },
}

impl Device {
    /// The name of the target, where it is not the process.
    pub(crate) fn target(self) -> Option<String> {
        match self {
            Self::Processor => None,
            Self::Cuda { number, .. } => Some(format!("cuda:{number}")),
        }
    }
}

/// Who makes results for a caller that gave such a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Numpy,
    Torch,
}

/// Keeps the memory where it is.
#[derive(Debug)]
enum Guard {
    Buffer(#[expect(dead_code, reason = "lets go of the memory when it is dropped")] BufferGuard),
    Dlpack(#[expect(dead_code, reason = "lets go of the memory when it is dropped")] DlpackGuard),
    /// The caller's reference suffices: it lives as long as the call.
    Borrowed,
}

/// The extents of a tensor, without an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extents {
    rank: usize,
    extents: [i64; MAX_RANK],
}

impl Extents {
    /// `None` if there are too many.
    fn new(extents: &[i64]) -> Option<Self> {
        let mut all = [0; MAX_RANK];
        all.get_mut(..extents.len())?.copy_from_slice(extents);
        Some(Self { rank: extents.len(), extents: all })
    }

    pub(crate) fn as_slice(&self) -> &[i64] {
        &self.extents[..self.rank]
    }
}

/// Why an object cannot be used.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It is no tensor at all.
    NoTensor,
    /// It is one, but not one that we can read: why, and what to do.
    Unfit(String),
    /// Python raised something.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Foreign {
    /// The memory of an object, which must outlive the result.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Result<Self, Refusal> {
        if buffer::offers(object) {
            return buffer::take(object);
        }
        if let Some((api, library)) = known(object)? {
            refuse_gradient(object)?;
            return dlpack::borrow(object, api, library);
        }
        if object.hasattr(intern!(object.py(), "__dlpack__"))? {
            refuse_gradient(object)?;
            return dlpack::take(object, library(object)?);
        }
        Err(Refusal::NoTensor)
    }

    /// The bytes that the elements cover. Only for dense tensors.
    pub(crate) fn range(&self, bytes: usize) -> std::ops::Range<usize> {
        let start = self.pointer as usize;
        start..start.saturating_add(bytes)
    }
}

/// The C table of an object's class, and whose class it is. Looking for either takes a good part of a short
/// call, so the answer for the last class is kept; the class with it, so that no other takes its place.
fn known(object: &Bound<'_, PyAny>) -> PyResult<Option<(&'static Exchange, Library)>> {
    type Known = (Py<PyType>, &'static Exchange, Library);
    static LAST: Mutex<Option<Known>> = Mutex::new(None);
    // Never held while Python runs, which may let another thread in that then waits for it.
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let class = object.get_type();
    if let Some((of, api, library)) = last().as_ref()
        && class.is(of)
    {
        return Ok(Some((api, *library)));
    }
    let Some(api) = dlpack::exchange(&class)? else { return Ok(None) };
    let library = library(object)?;
    let before = last().replace((class.unbind(), api, library));
    drop(before);
    Ok(Some((api, library)))
}

/// Whose tensor it is: PyTorch's have a hook of their own.
fn library(object: &Bound<'_, PyAny>) -> PyResult<Library> {
    let is_torch = object.hasattr(intern!(object.py(), "__torch_function__"))?;
    Ok(if is_torch { Library::Torch } else { Library::Numpy })
}

/// A tensor that records gradients would silently lose them.
fn refuse_gradient(object: &Bound<'_, PyAny>) -> Result<(), Refusal> {
    let flag = object.getattr_opt(intern!(object.py(), "requires_grad"))?;
    if flag.is_some_and(|flag| flag.is_truthy().unwrap_or(false)) {
        let text = "requires a gradient, which a plain call does not record; use the operator that \
                    tensorwright.torch.register returns, or pass .detach()";
        return Err(Refusal::Unfit(text.to_owned()));
    }
    Ok(())
}

/// Whether strides, in units that a step of one element has `unit` of, are those of dense rows. Axes of
/// extent one may have any stride, and tensors without elements any strides.
fn is_dense(extents: &[i64], strides: impl DoubleEndedIterator<Item = i64>, unit: i64) -> bool {
    let mut expected = unit;
    let mut dense = true;
    for (extent, stride) in extents.iter().rev().zip(strides.rev()) {
        dense &= *extent == 1 || stride == expected;
        expected = expected.saturating_mul(*extent);
    }
    dense || expected == 0
}
