//! Texts of definitions.

use std::collections::BTreeSet;

use pyo3::prelude::*;
use tensorwright::Module;

use crate::error::diagnosed;

/// A text whose definitions are operators. `tensorwright.define` makes it.
#[pyclass(frozen, module = "tensorwright._native")]
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) module: Module,
}

/// Parses and checks a text.
#[pyfunction]
#[pyo3(signature = (text, name))]
pub(crate) fn define(py: Python<'_>, text: &str, name: &str) -> PyResult<Source> {
    match Module::parse(name, text) {
        Ok(module) => Ok(Source { module }),
        Err(diagnostics) => Err(diagnosed(py, &diagnostics)),
    }
}

#[pymethods]
impl Source {
    /// The names of the definitions.
    fn names(&self) -> Vec<String> {
        self.module.defs().map(|def| def.name().to_owned()).collect()
    }

    /// The names of the sizes of all definitions.
    fn sizes(&self) -> Vec<String> {
        let all = self.module.defs().flat_map(|def| def.sizes());
        let all: BTreeSet<&str> = all.collect();
        all.into_iter().map(str::to_owned).collect()
    }

    /// The text.
    #[getter]
    fn text(&self) -> String {
        self.module.source().text().to_owned()
    }

    /// What may not be meant, as the command shows it; empty if all is well.
    fn warnings(&self) -> String {
        let warnings = self.module.warnings();
        if warnings.list().is_empty() { String::new() } else { warnings.to_string() }
    }

    /// The gradient of a definition: a text with one definition, and its name.
    fn grad(&self, py: Python<'_>, name: &str, wrt: Vec<String>) -> PyResult<(Self, String)> {
        let wrt: Vec<&str> = wrt.iter().map(String::as_str).collect();
        let gradient = self.module.grad(name, &wrt).map_err(|error| diagnosed(py, &error))?;
        let source = define(py, gradient.source(), gradient.name())?;
        Ok((source, gradient.name().to_owned()))
    }
}
