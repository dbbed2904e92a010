//! Range inference, and the proof that reads stay in bounds.

mod access;
mod facts;
mod plain;
mod prove;
mod query;
mod rounds;
mod system;

pub(crate) use access::{Access, accesses, accesses_inside};
pub(crate) use facts::Guard;
pub(crate) use plain::{Disagreement, disagreements};
pub(crate) use prove::{Claim, Premises, facts};
pub(crate) use query::{Range, RangeContext, Verdict};
pub(crate) use rounds::{
    Mentions, Origin, SettledRange, coefficient, index_axes, infer, mentions, of_round,
};
