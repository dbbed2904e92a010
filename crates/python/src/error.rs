//! Python exceptions; the classes are in `tensorwright/errors.py`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tensorwright::{Code, Diagnostics, printable};

use crate::interrupt::raised;

/// An exception class of `tensorwright.errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// An error in the text, its sizes or its schedule.
    Compile,
    /// An invalid argument of a call.
    Argument,
    /// An out-of-bounds subscript computed from data.
    Index,
    /// A kernel exceeded the device deadline.
    Deadline,
    /// Tuning failed.
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

    /// An exception of the class, with control characters escaped.
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

/// An exception with diagnostics, rendered as by the command, and as data.
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

/// Diagnostics about the arguments of a call, as an exception.
pub(crate) fn refused(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    shown(py, diagnostics, Class::Argument)
}

fn shown(py: Python<'_>, diagnostics: &Diagnostics, class: Class) -> PyErr {
    let error = class.error(py, format!("\n{diagnostics}"));
    let codes: Vec<String> =
        diagnostics.list().iter().map(|diagnostic| diagnostic.code.to_string()).collect();
    // The attribute is optional.
    let _ = error.value(py).setattr("codes", codes);
    error
}
