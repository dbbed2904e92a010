//! What a configuration file says, and who listens to what goes on.

use std::sync::OnceLock;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tensorwright_cli::{Configured, LoggingGuard, configure, init_logging_from_environment};

use crate::interrupt::listen;

/// Threads and target that `tensorwright.toml` says. Records are looked for where it says from the first call on.
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

/// The threads of kernels where nothing says it: one for each core that this process may use, as for the command.
#[pyfunction]
pub(crate) fn default_threads() -> u16 {
    tensorwright_cli::default_threads()
}
