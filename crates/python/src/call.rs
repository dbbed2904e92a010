//! Kernel calls on memory of other libraries.
#![allow(unsafe_code, reason = "hands memory of other libraries to kernels, after it was checked")]

use pyo3::prelude::*;
use tensorwright::{Diagnostics, Frozen, Place, StreamHandle};

use crate::compiled::{Compiled, CompiledKernel};
use crate::error::diagnosed;
use crate::interrupt::interruptible;
use crate::outputs::Outputs;
use crate::parts::unfit;
use crate::specialised::Specialised;

/// Pointers that may be sent to code that runs without the interpreter lock.
struct Pointers<'a> {
    inputs: &'a [*const u8],
    outputs: &'a [*mut u8],
}

// SAFETY: the objects that own the memory are held by the caller of `run` until it returns.
unsafe impl Sync for Pointers<'_> {}

impl Pointers<'_> {
    fn call(&self, shape: &Specialised, frozen: Option<&Frozen>) -> Result<(), Diagnostics> {
        // SAFETY: `Specialised::check` and `Outputs` made sure that each pointer has a tensor of the right type, extents
        // and strides behind it, aligned, and that no output overlaps another tensor.
        // Others who hold the tensors must not write them meanwhile; that holds for every operator of
        // NumPy and PyTorch as well.
        match &shape.part {
            Some(part) => unsafe { part.call(frozen, self.inputs, self.outputs) },
            None => Ok(()),
        }
    }
}

/// Device memory that may be sent to code that runs without the interpreter lock.
struct Places<'a> {
    inputs: &'a [Place],
    outputs: Vec<u64>,
}

// SAFETY: the objects that own the memory are held by the caller of `run_on` until it returns.
unsafe impl Sync for Places<'_> {}

impl Places<'_> {
    fn call(
        &self,
        compiled: &Compiled,
        stream: StreamHandle,
        wait: bool,
    ) -> Result<(), Diagnostics> {
        // SAFETY: `Specialised::check` and `Outputs` made sure that each place has a dense tensor of the right type and
        // extents, aligned, and that no output overlaps another tensor; `Site` that all are on the device of the kernel,
        // and the stream is that of their library, which keeps memory for what was asked of it.
        match &compiled.kernel {
            CompiledKernel::Fixed(kernel) => unsafe {
                kernel.call_on_stream(stream, self.inputs, &self.outputs, wait)
            },
            CompiledKernel::Sized(_) => Err(unfit(compiled)),
        }
    }
}

/// Calls a kernel on a stream of a device. Results are ready in stream order, or, with `wait`, on
/// return.
pub(crate) fn run_on(
    py: Python<'_>,
    compiled: &Compiled,
    stream: StreamHandle,
    wait: bool,
    inputs: &[Place],
    outputs: &Outputs<'_>,
) -> PyResult<()> {
    let outputs = outputs.pointers().iter().map(|pointer| *pointer as usize as u64).collect();
    let places = Places { inputs, outputs };
    let places = &places;
    let result = py.detach(|| interruptible(|| places.call(compiled, stream, wait)));
    result.map_err(|diagnostics| diagnosed(py, &diagnostics))
}

/// Calls a kernel. Releases the interpreter lock, unless the call is so short that releasing it
/// would cost more.
pub(crate) fn run(
    py: Python<'_>,
    shape: &Specialised,
    frozen: Option<&Frozen>,
    inputs: &[*const u8],
    outputs: &Outputs<'_>,
) -> Result<(), Diagnostics> {
    let pointers = Pointers { inputs, outputs: outputs.pointers() };
    let pointers = &pointers;
    if shape.part.as_ref().is_some_and(|part| part.is_long) {
        py.detach(|| interruptible(|| pointers.call(shape, frozen)))
    } else {
        pointers.call(shape, frozen)
    }
}
