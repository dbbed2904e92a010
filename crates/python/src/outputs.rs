//! Result arrays: new ones of the caller's library, or given ones.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};

use crate::arguments::{ArgumentValue, Arguments};
use crate::definition::Signature;
use crate::error::Class;
use crate::expected::Expected;
use crate::foreign::{Foreign, Gradients, Library, Refusal};
use crate::makers::{ArrayMakers, NewArray};
use crate::site::Site;

/// The results of a call.
pub(crate) struct Outputs<'py> {
    objects: Vec<Bound<'py, PyAny>>,
    pointers: Vec<*mut u8>,
    /// Keeps the memory alive.
    _foreign: Vec<Foreign>,
}

impl<'py> Outputs<'py> {
    /// New arrays of a library.
    pub(crate) fn new(
        py: Python<'py>,
        results: &[Expected],
        makers: &ArrayMakers,
        library: Library,
        site: Site,
    ) -> PyResult<Self> {
        let makers = makers.of(py, results, library, site)?;
        let mut outputs = Self::with_capacity(makers.len());
        for (maker, expected) in makers.iter().zip(results) {
            let NewArray { object, pointer, foreign } = maker.make(py, expected)?;
            outputs.push(object, pointer, foreign);
        }
        Ok(outputs)
    }

    /// Arrays given by the caller: one, or a tuple or list with one per result.
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
            if let Some(ArgumentValue::Tensor(foreign)) = given {
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
                Err(Refusal::NoTensor) => {
                    return refuse(format!("`out` for `{name}` is not an array"));
                }
            };
            if !foreign.is_dense() {
                // A copy would receive the result instead.
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
            outputs.push(object, foreign.pointer, Some(foreign));
        }
        Ok(outputs)
    }

    fn with_capacity(count: usize) -> Self {
        Self {
            objects: Vec::with_capacity(count),
            pointers: Vec::with_capacity(count),
            _foreign: Vec::new(),
        }
    }

    fn push(&mut self, object: Bound<'py, PyAny>, pointer: *mut u8, foreign: Option<Foreign>) {
        self.objects.push(object);
        self.pointers.push(pointer);
        self._foreign.extend(foreign);
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

/// Marks a PyTorch tensor as changed in place, so that gradients do not use saved values of it.
fn changes(object: &Bound<'_, PyAny>) -> PyResult<()> {
    static INCREMENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    // Other libraries may have PyTorch's hook as well.
    let Some(is_inference) = object.getattr_opt(intern!(py, "is_inference"))? else {
        return Ok(());
    };
    // Inference tensors have no version counter; gradients do not use them.
    if is_inference.call0()?.is_truthy()? {
        return Ok(());
    }
    let find =
        || py.import("torch.autograd.graph")?.getattr("increment_version").map(Bound::unbind);
    INCREMENT.get_or_try_init(py, find)?.call1(py, (object,))?;
    Ok(())
}
