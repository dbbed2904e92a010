//! The native module of the Python package: compiler, tuner and command.
//!
//! The Python part is `python/tensorwright`; this crate is its module `_native`. Tensors are used
//! in place (`foreign`), an operator is compiled once per set of shapes (`specialised`), and
//! problems become exceptions (`error`).

mod arguments;
mod call;
mod command;
mod compiled;
mod definition;
mod dense;
mod dynamic;
mod error;
mod expected;
mod family;
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

/// The native part of `tensorwright`.
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
    use pyo3::types::{IntoPyDict as _, PyTuple};
    use tensorwright::DType;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        let floats = DType::ALL.into_iter().filter(|dtype| dtype.is_float());
        let floats: Vec<&str> = floats.map(DType::name).collect();
        module.add("float_types", PyTuple::new(py, floats)?)?;
        let torch = DType::ALL.map(|dtype| (dtype.name(), dtype.row().torch));
        module.add("torch_types", torch.into_py_dict(py)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
