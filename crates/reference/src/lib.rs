//! The reference: buffers, and an interpreter that is slow and obviously right.
//!
//! [`run`] evaluates a [`Program`](tensorwright_lang::program::Program) one element at a time,
//! with every read checked. It is the oracle that generated code is compared with, so next to
//! each output it says how far from it a correct evaluation may be: see [`tolerance`].
//!
//! - [`Buffer`] is a dense tensor of any element type; [`npy`] reads and writes it as NumPy does,
//!   and [`random`] fills it.
//! - [`run`] gives a [`Run`] with an [`Output`] per result; [`Output::mismatch`] compares one
//!   with what other code computed.
//!
//! Nothing here does I/O, reads a clock or panics on what it is given.
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
