//! Parsing and printing of source text.
//!
//! [`parse`] turns a [`Source`](crate::source::Source) into an [`ast::Module`] and a list of
//! errors; it recovers from errors, so one run reports several of them. The `print_*` functions
//! turn a tree back into canonical text: parsing it gives the same tree, up to spans.

mod argmax;
pub mod ast;
mod foreign;
mod functions;
mod input;
mod lexer;
mod number;
mod parser;
mod print;
mod token;

pub use functions::{Expansion, PRELUDE, expand, prelude};
pub use input::source_from_bytes;
pub use parser::parse;
pub use print::{print_def, print_expr, print_function, print_module, print_stmt};
