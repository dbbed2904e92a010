//! Machine code through LLVM.
//!
//! - [`compile()`]: from a lowered loop nest to an object, [`Kernel`] to call it;
//! - [`target`]: the processors that code is generated for;
//! - [`math`]: the builtin functions, on scalars and vectors;
//! - [`passes`], [`object`]: from IR to an object file;
//! - [`jit`]: from an object file to code in this process, and out of it again.

mod compile;
mod emit;
pub mod error;
pub mod jit;
mod kernel;
pub mod math;
pub mod object;
pub mod passes;
pub mod target;

pub use compile::{CodegenLevel, Compiled, Listing, Options, PhaseTimes, compile, listing};
pub use emit::CheckedRead;
pub use kernel::{Kernel, Pool, Task};
