//! Texts of definitions.

use std::collections::{BTreeMap, BTreeSet};

use pyo3::prelude::*;
use tensorwright::Module;
use tensorwright::grad::Input;

use crate::error::diagnosed;

/// A text whose definitions are operators. `tensorwright.define` makes it.
#[pyclass(frozen, module = "tensorwright._native")]
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) module: Module,
}

/// A text and the name of its definition.
type Text = (Source, String);

/// What [`Source::training`] returns.
type TrainingTexts = (Option<Text>, Text, BTreeMap<String, usize>);

/// What is derived from a definition for its training.
const FORWARD_PASS: &str = "forward pass";
const GRADIENT: &str = "gradient";

/// What messages call a definition of a text: nobody knows the names in a text that was derived from
/// another one.
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

    /// A forward pass that returns what its gradient takes of its values (none, if the definition itself does), the gradient, and
    /// which of the gradient's parameters are in which place of what the forward pass returns.
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
