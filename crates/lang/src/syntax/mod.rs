//! Text to syntax tree and back.
//!
//! [`parse`] turns a [`Source`](crate::source::Source) into an [`ast::Module`] and the list of
//! what is wrong with the text; it recovers from mistakes, so one run reports several of them.
//! The `print_*` functions turn a tree back into canonical text: parsing what they print gives
//! the same tree, up to places in the text.

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
