//! The Python package `tensorwright`: the compiler, the tuner and the command, called from Python.
//!
//! Python's part is in `python/tensorwright`; this crate is its module `_native`. Tensors are taken where
//! they are (`foreign`), an operator is compiled once for each set of shapes (`specialised`), and
//! everything that can be wrong becomes an exception (`error`).

mod arguments;
mod call;
mod command;
mod compiled;
mod definition;
mod dense;
mod dynamic;
mod error;
mod expected;
mod foreign;
mod frozen;
mod interrupt;
mod kernels;
mod lock;
mod makers;
mod objects;
mod operator;
mod outputs;
mod parts;
mod prepared;
mod settings;
mod site;
mod source;
mod specialised;
mod tuning;

use pyo3::prelude::*;

/// What `python/tensorwright` is made of.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::command::{command, worker};
    #[pymodule_export]
    use super::operator::{Operator, compilations};
    #[pymodule_export]
    use super::settings::{configured, default_threads};
    #[pymodule_export]
    use super::source::{Source, define};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
