//! The reference: buffers, and a slow, simple interpreter.
//!
//! [`run`] evaluates a [`Program`](tensorwright_lang::program::Program) one element at a time, with
//! every read checked. It is the oracle for generated code, so it also computes how far from each
//! output a correct evaluation may be: see [`tolerance`].
//!
//! - [`Buffer`] is a dense tensor of any element type; [`npy`] reads and writes NumPy files, and
//!   [`random`] fills it.
//! - [`run`] returns a [`Run`] with an [`Output`] per result; [`Output::mismatch`] compares one
//!   with the result of other code.
//!
//! Nothing here does I/O, reads a clock or panics on its input.
//!
//! ```
//! use tensorwright_reference::{Buffer, Value, npy};
//!
//! let a = Buffer::from_f32(&[2, 3], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
//! assert_eq!(a.at(&[1, 2]), Some(Value::Float(5.0)));
//! assert_eq!(a.type_text(), "float(2, 3)");
//!
//! let file = npy::encode(&a)?;
//! assert_eq!(npy::decode(&file)?, a);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bounding;
mod buffer;
mod element;
mod eval;
mod interpret;
pub mod math;
mod memory;
pub mod npy;
mod number;
mod output;
pub mod random;
mod reduce;
mod running;
pub mod sample;
mod scatter;
mod target;
#[cfg(test)]
mod tests;
pub mod tolerance;

pub use buffer::{Buffer, BufferElement, BufferError, MAX_BYTES};
pub use element::{Element, Value};
pub use interpret::run;
pub use memory::{Memory, Write};
pub use output::{Mismatch, Output, Run, Summary, summarize};
pub use random::random_inputs;
