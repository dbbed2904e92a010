//! The language front end: source text to a checked, range-inferred [`Program`].
//!
//! ```text
//! text -> syntax::ast::Module -> checked definitions -> Program
//!         syntax::parse          Module::parse          Def::bind
//! ```
//!
//! [`Module`] is the entry point; it runs all passes and reports errors as
//! [`Diagnostics`](diagnostic::Diagnostics). Nothing here does I/O or reads a clock.

mod bind;
pub mod builtin;
mod check;
pub mod diagnostic;
pub mod dtype;
mod hir;
mod infer;
pub mod inline;
mod module;
mod nonlinear;
pub mod ops;
pub mod polynomial;
pub mod precision;
pub mod program;
pub mod source;
pub mod syntax;
#[cfg(test)]
mod tests;
pub mod text;
pub use module::{Def, Module, Signature};
pub use program::Program;
