//! Dense copies of tensors that kernels cannot read in place.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Class;
use crate::foreign::{Foreign, Gradients};

/// A dense copy of a tensor, or the same object if it is dense. Other objects are returned
/// unchanged.
pub(crate) fn dense<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    match Foreign::of(object, Gradients::Recorded) {
        // Its own library would read memory that does not exist.
        Ok(foreign) if !foreign.is_dense() && foreign.pointer.is_null() => {
            let text = "an argument has no memory: it was freed";
            return Err(Class::Argument.error(py, text.to_owned()));
        }
        Ok(foreign) if !foreign.is_dense() => {}
        _ => return Ok(object.clone()),
    }
    if let Some(method) = object.getattr_opt(intern!(py, "contiguous"))? {
        return method.call0();
    }
    py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "ascontiguousarray"), (object,))
}

pub(crate) fn dense_tuple<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let all: PyResult<Vec<_>> = args.iter().map(|arg| dense(&arg)).collect();
    PyTuple::new(args.py(), all?)
}

pub(crate) fn dense_dict<'py>(named: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(named.py());
    for (name, value) in named {
        made.set_item(name, dense(&value)?)?;
    }
    Ok(made)
}
