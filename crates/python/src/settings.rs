//! Configuration and logging of the Python package.

use std::sync::OnceLock;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tensorwright_cli::{Configured, LoggingGuard, configure, init_logging_from_environment};

use crate::interrupt::listen;

/// The threads and the target set in `tensorwright.toml`. The first call also sets the location of
/// records.
#[pyfunction]
pub(crate) fn configured() -> PyResult<(Option<u16>, Option<String>)> {
    static SAID: OnceLock<Result<Configured, String>> = OnceLock::new();
    static GUARD: OnceLock<Result<LoggingGuard, String>> = OnceLock::new();
    let said = SAID.get_or_init(configure).as_ref();
    listen();
    let guard = GUARD.get_or_init(init_logging_from_environment).as_ref();
    let problem = |text: &String| PyValueError::new_err(text.clone());
    guard.map_err(problem)?;
    said.map(|said| (said.threads, said.target.clone())).map_err(problem)
}

/// The default number of threads: one per core available to this process, as for the command.
#[pyfunction]
pub(crate) fn default_threads() -> u16 {
    tensorwright_cli::default_threads()
}
