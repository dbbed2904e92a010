//! Tensors of other libraries, where they are: through the buffer protocol (NumPy, `memoryview`) or DLPack
//! (PyTorch and others).

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

/// Memory of another library, described and kept alive while this exists.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) pointer: *mut u8,
    /// The element type, or how the other library calls one that we have not.
    pub(crate) dtype: Result<DType, String>,
    pub(crate) extents: Extents,
    /// How many elements neighbours along each axis are apart, unless elements lie one after the other in row-major order.
    pub(crate) strides: Option<Extents>,
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

/// What becomes of a tensor that records gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gradients {
    /// It is refused, since they would be lost without a word.
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

/// Whether PyTorch records gradients at the moment: not within `torch.no_grad()`.
fn is_recording(py: Python<'_>) -> PyResult<bool> {
    match py.import(intern!(py, "torch")) {
        Ok(torch) => torch.call_method0(intern!(py, "is_grad_enabled"))?.is_truthy(),
        Err(_) => Ok(true),
    }
}

/// Whether a tensor of PyTorch's is one of a level of forward mode.
fn has_tangent(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static MODULE: PyOnceLock<Option<Py<PyModule>>> = PyOnceLock::new();
    let py = object.py();
    let import = || py.import("torch.autograd.forward_ad").ok().map(Bound::unbind);
    let Some(module) = MODULE.get_or_init(py, import) else { return Ok(false) };
    let module = module.bind(py);
    // What it counts levels with has no public name; without it, there are no levels.
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

    /// Whether elements lie one after the other in row-major order.
    pub(crate) fn is_dense(&self) -> bool {
        self.strides.is_none()
    }

    /// Whether it may be a view of imaginary parts, between which there are real ones.
    fn may_be_negative(&self) -> bool {
        !self.is_dense() || self.extents.as_slice().iter().product::<i64>() == 1
    }

    /// How many elements neighbours along each axis are apart, unless the tensor is dense.
    pub(crate) fn strides(&self) -> Option<&[i64]> {
        self.strides.as_ref().map(Extents::as_slice)
    }

    /// The bytes from the first element to the last, of a tensor of any type.
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

    /// The bytes that the elements cover.
    pub(crate) fn range(&self, bytes: usize) -> std::ops::Range<usize> {
        let start = self.pointer as usize;
        start..start.saturating_add(bytes)
    }
}

/// A view. Those of PyTorch may stand for the negative of what is in memory: the imaginary part of a conjugate does.
fn signed(object: &Bound<'_, PyAny>, foreign: Foreign) -> Result<Foreign, Refusal> {
    let method = object.getattr_opt(intern!(object.py(), "is_neg"))?;
    let is_negative = method.map(|method| method.call0()?.is_truthy()).transpose()?;
    if is_negative == Some(true) {
        let text = "is a view of a conjugate, whose memory has the other sign; pass .resolve_neg()";
        return Err(Refusal::Unfit(text.to_owned()));
    }
    Ok(foreign)
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

/// Strides of elements, from those in units that a step of one element has `unit` of; `None` for those of dense rows. Axes of extent one may
/// have any stride, and tensors without elements any strides. A step of a part of an element is -1, which nobody takes.
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
