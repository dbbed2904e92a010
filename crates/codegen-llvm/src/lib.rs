//! Code generation with LLVM.
//!
//! - [`compile()`]: from a lowered loop nest to an object, [`JitKernel`] to call it;
//! - [`Processor`]: the CPU description that LLVM needs;
//! - [`math`]: the builtin functions, on scalars and vectors;
//! - [`passes`], [`object`]: from IR to an object file;
//! - [`ObjectCache`]: objects on disk, keyed by their inputs;
//! - [`jit`]: linking objects into this process, and unlinking them.

mod cache;
mod compile;
mod emit;
pub mod error;
pub mod jit;
mod kernel;
pub mod math;
pub mod object;
mod options;
pub mod passes;
mod processor;

pub use cache::ObjectCache;
pub use compile::{Compiled, Listing, PhaseTimes, compile, compile_again, compile_cached, listing};
pub use kernel::JitKernel;
pub use options::{CodegenLevel, CodegenOptions};
pub use processor::Processor;

/// The version of LLVM: major, minor, patch.
#[must_use]
pub fn llvm_version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}
