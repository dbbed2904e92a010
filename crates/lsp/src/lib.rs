//! The language server, over the Language Server Protocol.
//!
//! ```text
//! transport   bytes <-> messages          knows lengths and JSON
//! server      messages -> answers         knows the protocol's order of things
//! convert     answers in protocol's words knows lines and UTF-16
//! analysis    text + offset -> answers    knows the language, and no protocol
//! ```

pub mod analysis;
mod convert;
mod documents;
mod handlers;
mod position;
mod server;
#[cfg(test)]
mod tests;
mod transport;

pub use server::{Ending, run};
pub use transport::serve;
