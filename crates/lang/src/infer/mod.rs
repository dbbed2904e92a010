//! Range inference, and the proof that reads stay in bounds.

mod access;
mod facts;
mod plain;
mod query;
mod rounds;
mod system;

pub(crate) use access::{Access, accesses, accesses_inside};
pub(crate) use plain::{Disagreement, disagreements};
pub(crate) use query::{Range, RangeContext, Verdict};
pub(crate) use rounds::{Origin, SettledRange, coefficient, index_axes, infer};
