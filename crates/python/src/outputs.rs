//! Where results go: new arrays of the caller's library, or those that the caller gave.

use std::fmt;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use tensorwright::DType;

use crate::arguments::{Arguments, Given};
use crate::definition::Signature;
use crate::error::Class;
use crate::expected::{Expected, torch_name};
use crate::foreign::dlpack::{self, Exchange};
use crate::foreign::{Device, Foreign, Gradients, Library, Refusal};
use crate::site::Site;

/// The results of a call.
pub(crate) struct Outputs<'py> {
    objects: Vec<Bound<'py, PyAny>>,
    pointers: Vec<*mut u8>,
    /// Keep the memory where it is.
    _foreign: Vec<Foreign>,
}

/// Makes an array for a result.
struct Maker {
    function: Py<PyAny>,
    arguments: Py<PyTuple>,
    named: Option<Py<PyDict>>,
    /// What makes it in half the time, if the library has it.
    table: Option<&'static Exchange>,
    device: Device,
}

/// The makers of a kernel's results, by library and for the process or the device of the kernel, each made when it is
/// first needed.
#[derive(Default)]
pub(crate) struct Makers([[PyOnceLock<Vec<Maker>>; 2]; 2]);

impl fmt::Debug for Makers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Makers").finish_non_exhaustive()
    }
}

impl Maker {
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
            Library::Numpy => (py.import("numpy")?, numpy_name(output.dtype)),
            Library::Torch => (py.import("torch")?, Some(torch_name(output.dtype))),
        };
        let dtype = match dtype {
            Some(name) => module.getattr(name)?,
            None => py.import("ml_dtypes").and_then(|types| types.getattr("bfloat16")).map_err(|_| {
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
                Self { function, arguments, named: None, table: None, device }
            }
            Library::Torch => {
                let named = PyDict::new(py);
                named.set_item("dtype", dtype)?;
                // Not where a default device sends new tensors.
                let there = there.as_deref().unwrap_or("cpu");
                named.set_item("device", module.getattr("device")?.call1((there,))?)?;
                let arguments = PyTuple::new(py, [shape.into_any()])?.unbind();
                let class = module.getattr("Tensor")?.cast_into::<PyType>()?;
                let table = dlpack::exchange(&class)?;
                Self { function, arguments, named: Some(named.unbind()), table, device }
            }
        })
    }

    fn make<'py>(&self, py: Python<'py>, output: &Expected) -> PyResult<Bound<'py, PyAny>> {
        let made = |table| dlpack::allocate(py, table, output.dtype, &output.shape, self.device);
        if let Some(made) = self.table.and_then(made) {
            return made;
        }
        let named = self.named.as_ref().map(|named| named.bind(py));
        self.function.bind(py).call(self.arguments.bind(py), named)
    }
}

impl<'py> Outputs<'py> {
    /// New arrays of a library.
    pub(crate) fn new(
        py: Python<'py>,
        results: &[Expected],
        makers: &Makers,
        library: Library,
        site: Site,
    ) -> PyResult<Self> {
        let device = site.device();
        let of_library = &makers.0[library as usize];
        let makers = of_library[usize::from(site != Site::Process)].get_or_try_init(py, || {
            results
                .iter()
                .map(|output| Maker::new(py, library, device, output))
                .collect::<PyResult<Vec<_>>>()
        })?;
        let mut outputs = Self::with_capacity(makers.len());
        for (maker, expected) in makers.iter().zip(results) {
            let object = maker.make(py, expected)?;
            match Foreign::of(&object, Gradients::Recorded) {
                Ok(foreign) => match expected.check(&foreign) {
                    Ok(()) => outputs.push(object, foreign),
                    Err(problem) => {
                        return Err(Class::Argument.error(py, format!("a new array {problem}")));
                    }
                },
                Err(Refusal::Raised(error)) => return Err(error),
                Err(_) => {
                    return Err(Class::Argument.error(py, "a new array has no memory".to_owned()));
                }
            }
        }
        Ok(outputs)
    }

    /// Arrays that the caller gave: one, or a tuple or list of as many as there are results.
    pub(crate) fn given(
        signature: &Signature,
        results: &[Expected],
        arguments: &Arguments,
        out: &Bound<'py, PyAny>,
        site: Site,
    ) -> PyResult<Self> {
        let py = out.py();
        let refuse = |message: String| Err(Class::Argument.error(py, signature.says(&message)));
        let is_list = out.is_instance_of::<PyTuple>() || out.is_instance_of::<PyList>();
        let objects: Vec<Bound<'py, PyAny>> =
            if is_list { out.extract()? } else { vec![out.clone()] };
        if objects.len() != results.len() {
            let (count, given) = (results.len(), objects.len());
            return refuse(format!("has {count} results, and `out` has {given} arrays"));
        }
        let mut outputs = Self::with_capacity(objects.len());
        let mut taken: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        for (param, given) in signature.params.iter().zip(&arguments.given) {
            if let Some(Given::Tensor(foreign)) = given {
                taken.push((foreign.range(foreign.extent()), param.name.clone()));
            }
        }
        for (object, expected) in objects.into_iter().zip(results) {
            let name = &expected.name;
            let foreign = match Foreign::of(&object, Gradients::Refused) {
                Ok(foreign) => foreign,
                Err(Refusal::Raised(error)) => return Err(error),
                Err(Refusal::Unfit(problem)) => {
                    return refuse(format!("`out` for `{name}` {problem}"));
                }
                Err(Refusal::NoTensor) => return refuse(format!("`out` for `{name}` is no array")),
            };
            if !foreign.is_dense() {
                // A copy would get the result in its place.
                return refuse(format!(
                    "`out` for `{name}` is not contiguous; pass an array that is"
                ));
            }
            if let Err(problem) = expected.check(&foreign) {
                return refuse(format!("`out` for `{name}` {problem}"));
            }
            let (there, wanted) = (foreign.device.target(), site.device().target());
            if there != wanted {
                let name_of = |device: Option<String>| device.unwrap_or_else(|| "cpu".to_owned());
                return refuse(format!(
                    "`out` for `{name}` is on {}, and the arguments are on {}; pass tensors of one device",
                    name_of(there),
                    name_of(wanted)
                ));
            }
            if !foreign.is_writable {
                return refuse(format!("`out` for `{name}` is read-only"));
            }
            let range = foreign.range(expected.bytes);
            let overlaps =
                |other: &std::ops::Range<usize>| range.start < other.end && other.start < range.end;
            if let Some((_, other)) = taken.iter().find(|(other, _)| overlaps(other)) {
                return refuse(format!(
                    "`out` for `{name}` overlaps `{other}`; pass an array of its own"
                ));
            }
            taken.push((range, name.clone()));
            if foreign.library == Library::Torch {
                changes(&object)?;
            }
            outputs.push(object, foreign);
        }
        Ok(outputs)
    }

    fn with_capacity(count: usize) -> Self {
        Self {
            objects: Vec::with_capacity(count),
            pointers: Vec::with_capacity(count),
            _foreign: Vec::with_capacity(count),
        }
    }

    fn push(&mut self, object: Bound<'py, PyAny>, foreign: Foreign) {
        self.objects.push(object);
        self.pointers.push(foreign.pointer);
        self._foreign.push(foreign);
    }

    /// Where the results go, in order.
    pub(crate) fn pointers(&self) -> &[*mut u8] {
        &self.pointers
    }

    /// The array, or a tuple of them.
    pub(crate) fn into_result(mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.objects.pop() {
            Some(only) if self.objects.is_empty() => Ok(only),
            last => {
                self.objects.extend(last);
                Ok(PyTuple::new(py, &self.objects)?.into_any())
            }
        }
    }
}

/// Tells PyTorch that a tensor changes: whoever kept it for a gradient must not use it any more.
fn changes(object: &Bound<'_, PyAny>) -> PyResult<()> {
    static INCREMENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    // Others may have the hook of PyTorch as well.
    let Some(is_inference) = object.getattr_opt(intern!(py, "is_inference"))? else {
        return Ok(());
    };
    // These have no versions, and gradients do not use them.
    if is_inference.call0()?.is_truthy()? {
        return Ok(());
    }
    let find =
        || py.import("torch.autograd.graph")?.getattr("increment_version").map(Bound::unbind);
    INCREMENT.get_or_try_init(py, find)?.call1(py, (object,))?;
    Ok(())
}

/// What NumPy calls an element type, if it has it.
fn numpy_name(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::BFloat16 => None,
        DType::Bool => Some("bool_"),
        DType::Int8
        | DType::Int16
        | DType::Int32
        | DType::Int64
        | DType::UInt8
        | DType::UInt16
        | DType::UInt32
        | DType::UInt64
        | DType::Half
        | DType::Float
        | DType::Double => Some(torch_name(dtype)),
    }
}
