//! Source texts and their definitions.

use std::collections::{BTreeMap, BTreeSet};

use pyo3::prelude::*;
use tensorwright::Module;
use tensorwright::grad::Input;

use crate::error::diagnosed;

/// A checked text, made by `tensorwright.define`.
#[pyclass(frozen, module = "tensorwright._native")]
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) module: Module,
}

/// A text and the name of its definition.
type Text = (Source, String);

/// What [`Source::training`] returns.
type TrainingTexts = (Option<Text>, Text, BTreeMap<String, usize>);

/// Derived from a definition for training.
const FORWARD_PASS: &str = "forward pass";
const GRADIENT: &str = "gradient";

/// The name of a definition in messages: users do not know the names in a derived text.
pub(crate) fn title(source: &str, def: &str) -> String {
    let derived = source.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
    let part = |name: &&str| [FORWARD_PASS, GRADIENT].iter().any(|part| name.starts_with(part));
    derived.filter(part).map_or_else(|| def.to_owned(), |name| format!("the {name}"))
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

    /// The names of the integer scalars of all definitions.
    fn integer_scalars(&self) -> Vec<String> {
        let all = self.module.defs().flat_map(|def| def.integer_scalars());
        let all: BTreeSet<&str> = all.collect();
        all.into_iter().map(str::to_owned).collect()
    }

    /// The name of the text, such as that of a file.
    #[getter]
    fn name(&self) -> String {
        self.module.source().name().to_owned()
    }

    /// The text.
    #[getter]
    fn text(&self) -> String {
        self.module.source().text().to_owned()
    }

    /// Warnings, rendered as by the command; empty if there are none.
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

    /// The training texts of a definition: a forward pass that also returns the values that the
    /// gradient reuses (`None` if the definition itself suffices), the gradient, and the position
    /// of each reused value in the results of the forward pass.
    fn training(&self, py: Python<'_>, name: &str, wrt: Vec<String>) -> PyResult<TrainingTexts> {
        let wrt: Vec<&str> = wrt.iter().map(String::as_str).collect();
        let training = self.module.training(name, &wrt).map_err(|error| diagnosed(py, &error))?;
        let made = |text: &str, made: &str, part: &str| -> PyResult<Text> {
            Ok((define(py, text, &format!("<{part} of {name}>"))?, made.to_owned()))
        };
        let forward = training.forward().map(|text| made(text.source(), text.name(), FORWARD_PASS));
        let gradient = training.gradient();
        let saved = gradient.inputs().iter().filter_map(|input| match input {
            Input::Saved { name, place } => Some((name.clone(), *place)),
            _ => None,
        });
        let gradient = made(gradient.source(), gradient.name(), GRADIENT);
        Ok((forward.transpose()?, gradient?, saved.collect()))
    }
}
