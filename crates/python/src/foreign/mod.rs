//! Zero-copy access to tensors of other libraries.
//!
//! Through the buffer protocol (NumPy, `memoryview`) or DLPack (PyTorch and others).

mod buffer;
pub(crate) mod dlpack;
pub(crate) mod stable;

use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use tensorwright::DType;

use self::buffer::BufferGuard;
use self::dlpack::{DlpackGuard, Exchange};

/// The most axes of a tensor.
pub(crate) const MAX_RANK: usize = 16;

/// A description of another library's memory, which it keeps alive.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) pointer: *mut u8,
    /// The element type, or the other library's name of an unsupported one.
    pub(crate) dtype: Result<DType, String>,
    pub(crate) extents: Extents,
    /// The strides in elements; `None` for dense row-major tensors.
    pub(crate) strides: Option<Extents>,
    pub(crate) is_writable: bool,
    pub(crate) library: Library,
    pub(crate) device: Device,
    _guard: Guard,
}

/// The location of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    /// In host memory.
    Processor,
    /// In the memory of an NVIDIA device.
    Cuda {
        /// The device number.
        number: i32,
        /// The library's current stream. Without one, memory is ready on the default stream, and
        /// results must be ready when the call returns.
        stream: Option<u64>,
    },
}

impl Device {
    /// The name of the device target; `None` for host memory.
    pub(crate) fn target(self) -> Option<String> {
        match self {
            Self::Processor => None,
            Self::Cuda { number, .. } => Some(format!("cuda:{number}")),
        }
    }
}

/// The library that makes the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Numpy,
    Torch,
}

/// Keeps the memory alive.
#[derive(Debug)]
enum Guard {
    Buffer(#[expect(dead_code, reason = "lets go of the memory when it is dropped")] BufferGuard),
    Dlpack(#[expect(dead_code, reason = "lets go of the memory when it is dropped")] DlpackGuard),
    /// The caller's reference suffices: it outlives the call.
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

/// How to handle a tensor that records gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gradients {
    /// Reject it: its gradients would be lost silently.
    Refused,
    /// The caller records them.
    Recorded,
}

impl Gradients {
    fn check(self, object: &Bound<'_, PyAny>, library: Library) -> Result<(), Refusal> {
        if self == Self::Recorded {
            return Ok(());
        }
        let py = object.py();
        let flag = object.getattr_opt(intern!(py, "requires_grad"))?;
        if flag.is_some_and(|flag| flag.is_truthy().unwrap_or(false)) && is_recording(py)? {
            let text = "requires a gradient, which a plain call does not record; use the operator that \
                        tensorwright.torch.register returns, or pass .detach()";
            return Err(Refusal::Unfit(text.to_owned()));
        }
        if library == Library::Torch && has_tangent(object)? {
            let text = "has a tangent of forward mode, which a plain call does not pass on; pass .detach()";
            return Err(Refusal::Unfit(text.to_owned()));
        }
        Ok(())
    }
}

/// Whether PyTorch currently records gradients (not within `torch.no_grad()`).
fn is_recording(py: Python<'_>) -> PyResult<bool> {
    match py.import(intern!(py, "torch")) {
        Ok(torch) => torch.call_method0(intern!(py, "is_grad_enabled"))?.is_truthy(),
        Err(_) => Ok(true),
    }
}

/// Whether a PyTorch tensor has a forward-mode tangent.
fn has_tangent(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static MODULE: PyOnceLock<Option<Py<PyModule>>> = PyOnceLock::new();
    let py = object.py();
    let import = || py.import("torch.autograd.forward_ad").ok().map(Bound::unbind);
    let Some(module) = MODULE.get_or_init(py, import) else { return Ok(false) };
    let module = module.bind(py);
    // The level counter has no public name; without it, there are no levels.
    let level = module.getattr_opt(intern!(py, "_current_level"))?;
    if level.is_none_or(|level| level.extract::<i64>().is_ok_and(|level| level < 0)) {
        return Ok(false);
    }
    let dual = module.call_method1(intern!(py, "unpack_dual"), (object,))?;
    Ok(!dual.getattr(intern!(py, "tangent"))?.is_none())
}

/// Why an object cannot be used.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It is not a tensor.
    NoTensor,
    /// It is an unsupported tensor: the reason, and what to do.
    Unfit(String),
    /// A Python exception.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Foreign {
    /// The memory of an object, which must outlive the result.
    pub(crate) fn of(object: &Bound<'_, PyAny>, gradients: Gradients) -> Result<Self, Refusal> {
        if buffer::offers(object) {
            return buffer::take(object);
        }
        if let Some((api, library)) = known(object)? {
            gradients.check(object, library)?;
            let foreign = dlpack::borrow(object, api, library)?;
            return if foreign.may_be_negative() { signed(object, foreign) } else { Ok(foreign) };
        }
        if object.hasattr(intern!(object.py(), "__dlpack__"))? {
            let library = library(object)?;
            gradients.check(object, library)?;
            return dlpack::take(object, library);
        }
        Err(Refusal::NoTensor)
    }

    /// Whether the tensor is dense in row-major order.
    pub(crate) fn is_dense(&self) -> bool {
        self.strides.is_none()
    }

    /// Whether it may be a view of imaginary parts.
    fn may_be_negative(&self) -> bool {
        !self.is_dense() || self.extents.as_slice().iter().product::<i64>() == 1
    }

    /// The strides in elements; `None` for dense tensors.
    pub(crate) fn strides(&self) -> Option<&[i64]> {
        self.strides.as_ref().map(Extents::as_slice)
    }

    /// The bytes from the first element to the end of the last, for any type.
    pub(crate) fn extent(&self) -> usize {
        let size = self.dtype.as_ref().map_or(1, |dtype| dtype.bytes());
        let extents = self.extents.as_slice();
        let elements = match self.strides() {
            None => extents.iter().product(),
            Some(strides) => {
                let last =
                    extents.iter().zip(strides).map(|(extent, stride)| (extent - 1) * stride);
                last.sum::<i64>() + 1
            }
        };
        usize::try_from(elements).unwrap_or(0).saturating_mul(size)
    }

    /// The address range of the elements.
    pub(crate) fn range(&self, bytes: usize) -> std::ops::Range<usize> {
        let start = self.pointer as usize;
        start..start.saturating_add(bytes)
    }
}

/// Rejects PyTorch views with lazy negation (imaginary parts of conjugates), whose memory has the
/// other sign.
fn signed(object: &Bound<'_, PyAny>, foreign: Foreign) -> Result<Foreign, Refusal> {
    let method = object.getattr_opt(intern!(object.py(), "is_neg"))?;
    let is_negative = method.map(|method| method.call0()?.is_truthy()).transpose()?;
    if is_negative == Some(true) {
        let text = "is a view of a conjugate, whose memory has the other sign; pass .resolve_neg()";
        return Err(Refusal::Unfit(text.to_owned()));
    }
    Ok(foreign)
}

/// The C table and the library of an object's class. Both lookups cost a good part of a short call,
/// so the last answer is cached; the class is kept alive, so that no other class takes its address.
fn known(object: &Bound<'_, PyAny>) -> PyResult<Option<(&'static Exchange, Library)>> {
    type CachedClass = (Py<PyType>, &'static Exchange, Library);
    static LAST: Mutex<Option<CachedClass>> = Mutex::new(None);
    // Never held while Python runs, which may switch to a thread that then waits for it.
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

/// The library of a tensor; PyTorch's have their own hook.
fn library(object: &Bound<'_, PyAny>) -> PyResult<Library> {
    let is_torch = object.hasattr(intern!(object.py(), "__torch_function__"))?;
    Ok(if is_torch { Library::Torch } else { Library::Numpy })
}

/// Strides in elements, from strides of which `unit` make one element; `None` for dense rows. Axes
/// of extent one, and tensors without elements, may have any strides. A stride that is not a whole
/// number of elements becomes -1, which is rejected later.
fn strides(extents: &[i64], strides: &[i64], unit: i64) -> Result<Option<Extents>, Refusal> {
    let mut expected = 1i64;
    let mut dense = true;
    let mut found = Vec::with_capacity(extents.len());
    for (extent, stride) in extents.iter().zip(strides).rev() {
        let step = if unit > 0 && stride % unit == 0 { stride / unit } else { -1 };
        dense &= *extent == 1 || step == expected;
        expected = expected.saturating_mul(*extent);
        found.push(if *extent == 1 { 0 } else { step });
    }
    if dense || expected == 0 || extents.len() != strides.len() {
        return Ok(None);
    }
    found.reverse();
    Extents::new(&found).map(Some).ok_or_else(buffer::too_many)
}
