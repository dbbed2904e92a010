//! `const` arguments that calls leave out.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use crate::definition::Signature;
use crate::dense::dense;
use crate::error::Class;

/// Copies of the arguments that are frozen, by parameter.
pub(crate) fn bound(
    signature: &Signature,
    frozen: &Bound<'_, PyDict>,
) -> PyResult<Vec<Option<Py<PyAny>>>> {
    let mut bound: Vec<Option<Py<PyAny>>> = signature.params.iter().map(|_| None).collect();
    for (name, value) in frozen {
        let name: String = name.extract()?;
        let found = signature.params.iter().zip(&mut bound).find(|(param, _)| param.name == name);
        let problem = match found {
            Some((param, place)) if param.is_const => {
                *place = Some(copied(&value)?.unbind());
                continue;
            }
            Some((param, _)) => {
                format!(
                    "`{param}` is not const, so it cannot be frozen; declare it `const {param}`"
                )
            }
            None => format!("has no parameter `{name}`: they are ({})", signature.text()),
        };
        return Err(Class::Argument.error(frozen.py(), signature.says(&problem)));
    }
    Ok(bound)
}

/// A copy of an array, which nobody else can change. Numbers do not change.
fn copied<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        return Ok(value.clone());
    }
    let name = if value.hasattr("clone")? { "clone" } else { "copy" };
    let copy = value.call_method0(name)?;
    let copy = if copy.hasattr("detach")? { copy.call_method0("detach")? } else { copy };
    dense(&copy)
}
