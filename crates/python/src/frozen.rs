//! Frozen `const` arguments, which calls leave out.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyMemoryView};

use crate::arguments::{ArgumentValue, Arguments, given};
use crate::definition::{Definition, Signature, Sizes};
use crate::dense::dense;
use crate::error::Class;
use crate::expected::same_type;
use crate::foreign::Gradients;
use crate::specialised::Specialised;

/// Copies of the frozen arguments, by parameter.
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
                let number = signature.params.iter().position(|other| other.name == param.name);
                given(signature, number.unwrap_or(0), &value, Gradients::Refused)?;
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

/// Rejects values that no call could use: wrong types, and shapes that contradict the definition or
/// each other.
pub(crate) fn check(
    definition: &Definition,
    py: Python<'_>,
    bound: &[Option<Py<PyAny>>],
) -> PyResult<()> {
    let signature = &definition.signature;
    let mut arguments = Arguments { given: Vec::with_capacity(bound.len()), sizes: Sizes::new() };
    for (place, value) in bound.iter().enumerate() {
        let read = |value: &Py<PyAny>| given(signature, place, value.bind(py), Gradients::Recorded);
        let read = value.as_ref().map(read).transpose()?;
        let param = &signature.params[place];
        if let Some(ArgumentValue::Tensor(foreign)) = &read
            && let Err(problem) = same_type(param.dtype, foreign)
        {
            let message = format!("`{}` ({param}) {problem}", param.name);
            return Err(Class::Argument.error(py, signature.says(&message)));
        }
        arguments.given.push(read);
    }
    Specialised::sizes(definition, py, &arguments).map(|_| ())
}

/// A private copy of an array; numbers are immutable.
fn copied<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        return Ok(value.clone());
    }
    let copy = if value.hasattr("clone")? {
        value.call_method0("clone")?
    } else if value.hasattr("copy")? {
        value.call_method0("copy")?
    } else {
        // Python's own memory, such as `bytes`.
        let memory = PyMemoryView::from(value)?;
        value.py().import("numpy")?.call_method1("array", (memory,))?
    };
    let copy = if copy.hasattr("detach")? { copy.call_method0("detach")? } else { copy };
    dense(&copy)
}
