//! Creation of result arrays by the caller's library.

use std::fmt;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Class;
use crate::expected::Expected;
use crate::foreign::stable::{Blank, Stable};
use crate::foreign::{Device, Foreign, Gradients, Library, Refusal};
use crate::site::Site;

/// Makes an array for a result.
pub(crate) struct ArrayMaker {
    function: Py<PyAny>,
    arguments: Py<PyTuple>,
    named: Option<Py<PyDict>>,
    /// A faster way, if the library has it.
    blank: Option<Blank>,
}

/// A new array.
pub(crate) struct NewArray<'py> {
    pub(crate) object: Bound<'py, PyAny>,
    pub(crate) pointer: *mut u8,
    /// Keeps the memory alive, where the object alone does not.
    pub(crate) foreign: Option<Foreign>,
}

/// The makers of a kernel's results, by library and by location (host or device), created on first
/// use.
#[derive(Default)]
pub(crate) struct ArrayMakers([[PyOnceLock<Vec<ArrayMaker>>; 2]; 2]);

impl fmt::Debug for ArrayMakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayMakers").finish_non_exhaustive()
    }
}

impl ArrayMakers {
    /// The makers of a library, for results at the location of the call.
    pub(crate) fn of(
        &self,
        py: Python<'_>,
        results: &[Expected],
        library: Library,
        site: Site,
    ) -> PyResult<&[ArrayMaker]> {
        let make = || {
            let one = |output| ArrayMaker::new(py, library, site.device(), output);
            results.iter().map(one).collect::<PyResult<Vec<_>>>()
        };
        let place = usize::from(site != Site::Process);
        self.0[library as usize][place].get_or_try_init(py, make).map(Vec::as_slice)
    }
}

impl ArrayMaker {
    fn new(py: Python<'_>, library: Library, device: Device, output: &Expected) -> PyResult<Self> {
        let there = device.target();
        if let (Library::Numpy, Some(there)) = (library, &there) {
            let message = format!(
                "the result `{}` is on {there}, and its library is not known to make tensors there; pass `out=`",
                output.name
            );
            return Err(Class::Argument.error(py, message));
        }
        let shape = PyTuple::new(py, &output.shape)?;
        let (module, dtype) = match library {
            Library::Numpy => (py.import("numpy")?, output.dtype.row().numpy),
            Library::Torch => (py.import("torch")?, Some(output.dtype.row().torch)),
        };
        let dtype = match dtype {
            Some(name) => module.getattr(name)?,
            None => py.import("ml_dtypes").and_then(|types| types.getattr(output.dtype.row().torch)).map_err(|_| {
                let message = format!(
                    "numpy has no `{}` of its own for the result `{}`; install ml_dtypes, which has one, or pass torch tensors",
                    output.dtype, output.name
                );
                Class::Argument.error(py, message)
            })?,
        };
        let function = module.getattr("empty")?.unbind();
        Ok(match library {
            Library::Numpy => {
                let dtype = module.getattr("dtype")?.call1((dtype,))?;
                let arguments = PyTuple::new(py, [shape.into_any(), dtype])?.unbind();
                Self { function, arguments, named: None, blank: None }
            }
            Library::Torch => {
                let named = PyDict::new(py);
                named.set_item("dtype", dtype)?;
                // Ignores PyTorch's default device for new tensors.
                let there = there.as_deref().unwrap_or("cpu");
                named.set_item("device", module.getattr("device")?.call1((there,))?)?;
                let arguments = PyTuple::new(py, [shape.into_any()])?.unbind();
                let blank = Stable::of(&module)
                    .and_then(|stable| Blank::new(stable, output.dtype, &output.shape, device));
                Self { function, arguments, named: Some(named.unbind()), blank }
            }
        })
    }

    /// A new array.
    pub(crate) fn make<'py>(&self, py: Python<'py>, output: &Expected) -> PyResult<NewArray<'py>> {
        if let Some((object, pointer)) = self.blank.as_ref().and_then(|blank| blank.make(py)) {
            return Ok(NewArray { object, pointer, foreign: None });
        }
        let named = self.named.as_ref().map(|named| named.bind(py));
        let object = self.function.bind(py).call(self.arguments.bind(py), named)?;
        let refuse = |problem: String| Class::Argument.error(py, format!("a new array {problem}"));
        let foreign = match Foreign::of(&object, Gradients::Recorded) {
            Ok(foreign) => foreign,
            Err(Refusal::Raised(error)) => return Err(error),
            Err(_) => return Err(refuse("has no memory".to_owned())),
        };
        output.check(&foreign).map_err(refuse)?;
        Ok(NewArray { object, pointer: foreign.pointer, foreign: Some(foreign) })
    }
}
