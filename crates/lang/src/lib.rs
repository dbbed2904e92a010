//! From source text to a checked, range-inferred [`Program`](program::Program).
#![warn(missing_docs)]

mod bind;
pub mod builtin;
mod check;
pub mod diagnostic;
pub mod dtype;
mod hir;
mod infer;
mod module;
pub mod ops;
pub mod program;
pub mod source;
pub mod syntax;
pub use module::{Def, Module, Signature};
pub use program::Program;
