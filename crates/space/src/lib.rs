//! Search spaces: products of parameters, independent of tensors.
//!
//! A [`SearchSpace`] is a product of [`Parameter`]s, each a finite set with the topology of OpEvo
//! section 3 and the directions of FlexTensor section 5.1. It knows its exact size, samples
//! uniformly, and enumerates neighbours. All searches use it, so they work on every program, every
//! target, and on recorded landscapes. The crate `tensorwright-policy` defines the parameters of a
//! program and the schedule of a [`Point`].

pub mod parameter;
mod point;
mod rules;
mod search_space;
#[cfg(test)]
mod tests;

pub use parameter::{Domain, Parameter};
pub use point::Point;
pub use rules::{NoRules, Rejection, Rules};
pub use search_space::SearchSpace;
pub use tensorwright_random::Rng;
