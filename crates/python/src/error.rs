//! Problems as Python's exceptions. The classes are in `tensorwright/errors.py`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tensorwright::{Code, Diagnostics, printable};

use crate::interrupt::raised;

/// A class of `tensorwright.errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The text, its sizes or its schedule are wrong.
    Compile,
    /// An argument of a call does not fit.
    Argument,
    /// A subscript that was computed from data is out of bounds.
    Index,
    /// A kernel did not end on its device in time.
    Deadline,
    /// Tuning could not go on.
    Tuning,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::Compile => "CompileError",
            Self::Argument => "ArgumentError",
            Self::Index => "IndexOutOfBoundsError",
            Self::Deadline => "DeadlineError",
            Self::Tuning => "TuningError",
        }
    }

    /// An exception of the class. Terminals show what it quotes and do not obey it.
    pub(crate) fn error(self, py: Python<'_>, message: String) -> PyErr {
        let message = printable(&message);
        match class(py, self.name()).and_then(|class| class.call1((&*message,))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        ERRORS.get_or_try_init(py, || py.import("tensorwright.errors").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Diagnostics as an exception, which shows them as the command does, and has them as data.
pub(crate) fn diagnosed(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    if let Some(raised) = raised() {
        return raised;
    }
    let code = diagnostics.list().first().map(|diagnostic| diagnostic.code);
    let class = match code {
        Some(Code::IndexOutOfBounds) => Class::Index,
        Some(Code::DeadlineExceeded) => Class::Deadline,
        Some(Code::InputShape | Code::InputType) => Class::Argument,
        _ => Class::Compile,
    };
    shown(py, diagnostics, class)
}

/// Diagnostics about the arguments of a call.
pub(crate) fn refused(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    shown(py, diagnostics, Class::Argument)
}

fn shown(py: Python<'_>, diagnostics: &Diagnostics, class: Class) -> PyErr {
    let error = class.error(py, format!("\n{diagnostics}"));
    let codes: Vec<String> =
        diagnostics.list().iter().map(|diagnostic| diagnostic.code.to_string()).collect();
    // An exception that cannot be given an attribute is still an exception.
    let _ = error.value(py).setattr("codes", codes);
    error
}
