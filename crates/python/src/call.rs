//! Calls of kernels on memory of other libraries.
#![allow(unsafe_code, reason = "hands memory of other libraries to kernels, after it was checked")]

use pyo3::prelude::*;
use tensorwright::{Diagnostics, Frozen};

use crate::error::diagnosed;
use crate::outputs::Outputs;
use crate::specialised::Specialised;

/// Pointers that may be handed to code that runs without the interpreter.
struct Pointers<'a> {
    inputs: &'a [*const u8],
    outputs: &'a [*mut u8],
}

// SAFETY: the objects that own the memory are held by the caller of `run` until it returns.
unsafe impl Sync for Pointers<'_> {}

impl Pointers<'_> {
    fn call(&self, kernel: &Specialised, frozen: Option<&Frozen>) -> Result<(), Diagnostics> {
        // SAFETY: `Specialised::check` and `Outputs` made sure that each pointer has a dense tensor of
        // the right type and extents behind it, aligned, and that no output overlaps another tensor.
        // Others who hold the tensors must not write them meanwhile; that holds for every operator of
        // NumPy and PyTorch as well.
        unsafe { kernel.kernel.call_on(frozen, self.inputs, self.outputs) }
    }
}

/// Calls a kernel. The interpreter is free for others meanwhile, unless the call is so short that
/// leaving and entering it would cost more.
pub(crate) fn run(
    py: Python<'_>,
    kernel: &Specialised,
    frozen: Option<&Frozen>,
    inputs: &[*const u8],
    outputs: &Outputs<'_>,
) -> PyResult<()> {
    let pointers = Pointers { inputs, outputs: outputs.pointers() };
    let pointers = &pointers;
    let result = if kernel.is_long {
        py.detach(|| pointers.call(kernel, frozen))
    } else {
        pointers.call(kernel, frozen)
    };
    result.map_err(|diagnostics| diagnosed(py, &diagnostics))
}
