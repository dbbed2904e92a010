//! The `tensorwright` command and the child process of the tuner.

use pyo3::prelude::*;
use tensorwright_measure::WorkerCommand;

/// Runs the command and returns its exit code.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<String>) -> PyResult<u8> {
    let worker = worker_command(py)?;
    Ok(py.detach(|| tensorwright_cli::main(arguments.into_iter().map(Into::into), worker)))
}

/// Serves a tuner until it closes the connection, and returns the exit code.
#[pyfunction]
pub(crate) fn worker(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| tensorwright_cli::worker(arguments))
}

/// How the tuner starts a child: this interpreter in isolated mode, with this module.
pub(crate) fn worker_command(py: Python<'_>) -> PyResult<WorkerCommand> {
    let interpreter: String = py.import("sys")?.getattr("executable")?.extract()?;
    let module: String = py.import("tensorwright._native")?.getattr("__file__")?.extract()?;
    const SCRIPT: &str = "import sys, importlib.util as u
s = u.spec_from_file_location('_native', sys.argv[1])
m = u.module_from_spec(s)
s.loader.exec_module(m)
sys.exit(m.worker(sys.argv[2:]))";
    Ok(WorkerCommand::new(interpreter).arg("-I").arg("-S").arg("-c").arg(SCRIPT).arg(module))
}
